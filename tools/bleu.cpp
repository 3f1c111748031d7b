#include "heed/run/bleu.h"

#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  heed::BleuToolOptions options;
  return heed::tool_main(
      heed::bleu_tool_info(), heed::FieldList::of(options), options.common, &options.output, argc, argv,
      [&](std::istream& in, std::ostream& out, heed::Log& log) { return heed::run_bleu(options, in, out, log); });
}
