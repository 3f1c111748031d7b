#include "heed/run/build_vocab.h"
#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  heed::BuildVocabOptions options;
  return heed::tool_main(heed::kBuildVocabTool, heed::FieldList::of(options), options.common, &options.output, argc,
                         argv, [&](std::istream& in, std::ostream& out, heed::Log& log) {
                           return heed::run_build_vocab(options, in, out, log);
                         });
}
