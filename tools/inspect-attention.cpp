#include "heed/run/inspect_attention.h"

#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  constexpr int kStandardOutput = 1, kColumnsOfFiles = 80;
  heed::InspectAttentionOptions options;
  heed::FieldList fields = heed::FieldList::of(options);
  return heed::tool_main(heed::inspect_attention_tool_info(), fields, options.common, &options.output, argc, argv,
                         [&](std::istream& in, std::ostream& out, heed::Log& log) {
                           if (options.output != "-")
                             return heed::run_inspect_attention(options, {}, kColumnsOfFiles, in, out, log);
                           return heed::run_inspect_attention(options, heed::TerminalEnvironment::of(kStandardOutput),
                                                              heed::terminal_width(kStandardOutput), in, out, log);
                         });
}
