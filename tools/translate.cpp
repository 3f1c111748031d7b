#include "heed/run/translate.h"

#include "heed/base/streams.h"
#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  heed::TranslateOptions options;
  return heed::tool_main(heed::translate_tool_info(), heed::FieldList::of(options), options.common, argc, argv,
                         [&](std::istream& in, std::ostream& standard_output, heed::Log& log) {
                           if (options.output == "-") return heed::run_translate(options, in, standard_output, log);
                           heed::OutputFile file(options.output);
                           const int code = heed::run_translate(options, in, file.stream(), log);
                           file.commit();
                           return code;
                         });
}
