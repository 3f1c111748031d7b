#include "heed/run/inspect_attention.h"

#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  heed::InspectAttentionOptions options;
  heed::FieldList fields = heed::FieldList::of(options);
  return heed::tool_main(heed::inspect_attention_tool_info(), fields, options.common, &options.output, argc, argv,
                         [&](std::istream& in, std::ostream& out, heed::Log& log) {
                           options.given = fields.given();
                           return heed::run_inspect_attention(options,
                                                              heed::TerminalEnvironment::of_output(options.output),
                                                              heed::width_of_output(options.output), in, out, log);
                         });
}
