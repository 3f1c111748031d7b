#include "heed/run/translate.h"

#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  heed::TranslateOptions options;
  return heed::tool_main(
      heed::translate_tool_info(), heed::FieldList::of(options), options.common, &options.output, argc, argv,
      [&](std::istream& in, std::ostream& out, heed::Log& log) { return heed::run_translate(options, in, out, log); });
}
