#include "heed/run/bleu.h"

#include "heed/base/streams.h"
#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  heed::BleuToolOptions options;
  return heed::tool_main(heed::bleu_tool_info(), heed::FieldList::of(options), options.common, argc, argv,
                         [&](std::istream& in, std::ostream& standard_output, heed::Log& log) {
                           if (options.output == "-") return heed::run_bleu(options, in, standard_output, log);
                           heed::OutputFile file(options.output);
                           const int code = heed::run_bleu(options, in, file.stream(), log);
                           file.commit();
                           return code;
                         });
}
