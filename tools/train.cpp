#include "heed/run/train.h"

#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  heed::TrainOptions options;
  return heed::tool_main(
      heed::train_tool_info(), heed::FieldList::of(options), options.common, nullptr, argc, argv,
      [&](std::istream& in, std::ostream& out, heed::Log& log) { return heed::run_train(options, in, out, log); });
}
