#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>

#include "heed/base/log.h"
#include "heed/base/terminal.h"
#include "heed/config/command_line.h"
#include "heed/run/attention_report.h"

namespace heed {

/// The options of the program `inspect-attention`.
struct InspectAttentionOptions {
  std::string model;
  std::string input = "-", output = "-";
  std::string target;
  bool tsv = false;
  std::string lines;
  Utf8Options utf8;
  std::optional<int> beam_size = {};
  int max_length = 1000;
  std::string device = "auto";
  AttentionReportOptions report;
  CommonOptions common;
  std::vector<std::string> given = {};  ///< names of the options that the user has set (FieldList::given)

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Input and output");
    visit(model, {.name = "model",
                  .help = "checkpoint that train wrote",
                  .value = "MODEL.h5",
                  .file = FileUse::read,
                  .letter = 'm'});
    visit(input, {.name = "input",
                  .help = "read source lines from FILE",
                  .value = "FILE",
                  .file = FileUse::read,
                  .letter = 'i'});
    visit(target, {.name = "target",
                   .help = "read the target of each source line from FILE, instead of translating",
                   .value = "FILE",
                   .file = FileUse::read,
                   .letter = 't'});
    visit(tsv, {.name = "tsv", .help = "each input line is source TAB target"});
    visit(output, {.name = "output",
                   .help = "write to FILE, which appears when it is complete",
                   .value = "FILE",
                   .file = FileUse::written,
                   .letter = 'o'});
    visit(lines,
          {.name = "lines", .help = "show only these input lines, counted from 1 (for example 3,7-9)", .value = "N"});
    utf8.fields(visit);
    report.fields(visit);
    visit.section("Translation");
    visit(beam_size, {.name = "beam-size",
                      .help = "number of hypotheses when the tool translates (4); 1 is greedy search",
                      .value = "N",
                      .letter = 'b',
                      .min = 1,
                      .max = 1000});
    visit(max_length,
          {.name = "max-length",
           .help = "longest source, and longest target of -t or --tsv, in pieces; a longer line is an error",
           .value = "N",
           .min = 1,
           .max = 100000});
    visit(device, {.name = "device",
                   .help = "compute on the CPU or on a GPU: auto takes a GPU where there is one",
                   .value = "auto|cpu|cuda:N"});
    common.fields(visit);
  }
};

ToolInfo inspect_attention_tool_info();

/// Runs the program `inspect-attention`: writes the attention weights of each sentence as soon as the sentence has been
/// read. `environment` describes the terminal, if any, that `out` is connected to, and `columns` is the width of the
/// terminal. Returns the exit code.
int run_inspect_attention(const InspectAttentionOptions& options, const TerminalEnvironment& environment, int columns,
                          std::istream& in, std::ostream& out, Log& log);

}  // namespace heed
