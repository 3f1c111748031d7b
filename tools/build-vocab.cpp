#include "heed/run/build_vocab.h"
#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  heed::BuildVocabOptions options;
  heed::FieldList fields = heed::FieldList::of(options);
  return heed::tool_main(heed::build_vocab_tool_info(), fields, options.common, &options.output, argc, argv,
                         [&](std::istream& in, std::ostream& out, heed::Log& log) {
                           options.given = fields.given();
                           return heed::run_build_vocab(options, in, out, log);
                         });
}
