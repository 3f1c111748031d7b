#include "heed/run/train.h"

#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  heed::TrainOptions options;
  heed::FieldList fields = heed::FieldList::of(options);
  return heed::tool_main(heed::train_tool_info(), fields, options.common, nullptr, argc, argv,
                         [&](std::istream& in, std::ostream& out, heed::Log& log) {
                           options.given = fields.given();
                           return heed::run_train(options, in, out, log);
                         });
}
