#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"
#include "heed/metrics/bleu.h"

namespace heed {

enum class BleuFormat { text, json };

template <>
struct EnumNames<BleuFormat> {
  static constexpr std::pair<BleuFormat, std::string_view> values[] = {{BleuFormat::text, "text"},
                                                                       {BleuFormat::json, "json"}};
};

/// What the tool `bleu` is asked for. Defaults are sacreBLEU's; one that depends on other options is not given.
struct BleuToolOptions {
  std::vector<std::string> references;
  std::vector<std::string> input;
  std::string output = "-";
  std::optional<MtevalMode> tokenize;  ///< 13a, but none with d2l
  bool lowercase = false;
  BleuSmoothing smooth_method = BleuSmoothing::exp;
  std::optional<double> smooth_value;
  int max_order = 4;
  std::optional<bool> effective_order;  ///< as sentence_level
  bool sentence_level = false;
  std::optional<int> d2l;
  bool score_only = false;
  std::optional<int> width;          ///< 1, but 3 with d2l
  std::optional<BleuFormat> format;  ///< json for a corpus, text for sentences
  bool signature = false;
  bool force = false;
  std::optional<double> fail_under;
  Utf8Options utf8;
  CommonOptions common;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Input and output");
    visit(references, {.name = "references", .help = "reference translations", .value = "REF", .positional = true});
    visit(input, {.name = "input", .help = "score these instead of stdin", .value = "HYP", .letter = 'i'});
    visit(output, {.name = "output", .help = "write the scores to FILE", .value = "FILE", .letter = 'o'});
    utf8.fields(visit);
    visit.section("Scoring");
    visit(tokenize, {.name = "tokenize", .help = "what the n-grams are made of; 13a where not given", .alias = "tok"});
    visit(lowercase, {.name = "lowercase", .help = "lower-case both sides first", .alias = "lc"});
    visit(smooth_method, {.name = "smooth-method", .help = "what stands for a precision of zero", .letter = 's'});
    visit(smooth_value, {.name = "smooth-value",
                         .help = "of floor (0.1 where not given) or add-k (1)",
                         .value = "X",
                         .alias = "sv",
                         .min = 0,
                         .max = 1e9});
    visit(max_order, {.name = "max-order", .help = "longest n-gram", .value = "N", .min = 1, .max = 16});
    visit(effective_order, {.name = "effective-order",
                            .help = "leave out the n-grams a text is too short for; on with --sentence-level"});
    visit(sentence_level, {.name = "sentence-level", .help = "a score for every line", .alias = "sl"});
    visit(d2l, {.name = "d2l",
                .help = "the textbook's BLEU of every line, 0 to 1, on n-grams up to K of words between spaces",
                .value = "K",
                .min = 1,
                .max = 16});
    visit(force, {.name = "force", .help = "no warning where the text looks tokenised"});
    visit.section("Report");
    visit(score_only, {.name = "score-only", .help = "print the number alone", .letter = 'b'});
    visit(width, {.name = "width",
                  .help = "decimals of the score; 1 where not given (3 with --d2l)",
                  .value = "N",
                  .letter = 'w',
                  .min = 0,
                  .max = 100});
    visit(format, {.name = "format", .help = "json where not given, text for single lines", .letter = 'f'});
    visit(signature, {.name = "signature", .help = "print what the score would be of, and stop"});
    visit(fail_under, {.name = "fail-under", .help = "exit 3 when a score is below X", .value = "X"});
    common.fields(visit);
  }
};

/// Scores hypotheses (options.input, or `in`) against options.references and writes the report to `out`. Reads all
/// files side by side, a line at a time, in constant memory. Returns 0, or 3 where a score is below
/// options.fail_under. Throws UsageError where options contradict each other, Error for unreadable, empty or unequally
/// long files.
int run_bleu(const BleuToolOptions& options, std::istream& in, std::ostream& out, Log& log);

/// Name, purpose, usage and other toolkits' option names.
ToolInfo bleu_tool_info();

}  // namespace heed
