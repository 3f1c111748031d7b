#include "heed/run/kernel_regression.h"

#include "heed/run/tool_main.h"

int main(int argc, char** argv) {
  constexpr int kStandardOutput = 1, kColumnsOfFiles = 80;
  heed::KernelRegressionOptions options;
  heed::FieldList fields = heed::FieldList::of(options);
  return heed::tool_main(heed::kernel_regression_tool_info(), fields, options.common, &options.output, argc, argv,
                         [&](std::istream& in, std::ostream& out, heed::Log& log) {
                           options.given = fields.given();
                           if (options.output != "-")
                             return heed::run_kernel_regression(options, {}, kColumnsOfFiles, in, out, log);
                           return heed::run_kernel_regression(options, heed::TerminalEnvironment::of(kStandardOutput),
                                                              heed::terminal_width(kStandardOutput), in, out, log);
                         });
}
