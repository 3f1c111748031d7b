#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"
#include "heed/metrics/bleu.h"
#include "heed/metrics/chrf.h"
#include "heed/metrics/evalb.h"
#include "heed/metrics/metric.h"
#include "heed/metrics/ter.h"

namespace heed {

/// The metrics that the program `bleu` computes.
constexpr auto kTranslationMetrics = enum_names(Metric::bleu, Metric::chrf, Metric::ter, Metric::exact, Metric::evalb);

enum class BleuFormat { text, json, tsv, junit };

template <>
struct EnumNames<BleuFormat> {
  static constexpr std::pair<BleuFormat, std::string_view> values[] = {
      {BleuFormat::text, "text"}, {BleuFormat::json, "json"}, {BleuFormat::tsv, "tsv"}, {BleuFormat::junit, "junit"}};
};

/// The options of the program `bleu`. The defaults are sacreBLEU's. An empty optional means that the default depends on
/// other options.
struct BleuToolOptions {
  std::vector<std::string> references;
  int num_refs = 1;
  std::vector<std::string> input;
  std::string output = "-";
  int threads = 0;
  std::vector<Metric> metrics = {Metric::bleu};
  bool sentence_level = false;
  /// The tokeniser that BLEU uses. The default is 13a, or none with --d2l.
  std::optional<MtevalMode> tokenize;
  bool lowercase = false;
  BleuSmoothing smooth_method = BleuSmoothing::exp;
  std::optional<double> smooth_value;
  int max_order = 4;
  /// Whether BLEU leaves out the n-gram orders that are longer than the hypothesis. The default is true for scores of
  /// single lines, otherwise false.
  std::optional<bool> effective_order;
  bool force = false;
  std::optional<int> d2l;
  bool multi_bleu = false;
  ChrfOptions chrf;
  TercomOptions ter;
  std::string evalb_params;
  bool evalb_unlabelled = false, evalb_gold_tags = false;
  std::optional<int> evalb_cutoff;
  bool evalb_table = false;
  BadTree on_bad_tree = BadTree::fail;
  bool confidence = false;
  std::int64_t confidence_n = 1000;
  bool paired_bs = false, paired_ar = false;
  std::int64_t paired_bs_n = 1000, paired_ar_n = 10000;
  std::int64_t seed = 12345;
  std::string baseline;
  bool score_only = false;
  /// The number of decimals of a score. The default is 1, or 3 with --d2l.
  std::optional<int> width;
  /// The format of the report. The default is json for the score of a corpus, and text for scores of single lines and
  /// for --by-length.
  std::optional<BleuFormat> format;
  bool signature = false;
  bool short_signature = false;
  std::optional<std::int64_t> worst;
  bool by_length = false;
  std::optional<double> fail_under, fail_drop;
  Utf8Options utf8;
  CommonOptions common;
  std::vector<std::string> given;  ///< names of the options that the user has set (FieldList::given)

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Input and output");
    visit(references, {.name = "references",
                       .help = "reference translations",
                       .value = "REF",
                       .file = FileUse::read,
                       .positional = true});
    visit(num_refs, {.name = "num-refs",
                     .help = "REF holds N references on each line, separated by TABs",
                     .value = "N",
                     .alias = "nr",
                     .min = 1,
                     .max = 1000});
    visit(input, {.name = "input",
                  .help = "score these files instead of standard input",
                  .value = "HYP",
                  .file = FileUse::read,
                  .letter = 'i'});
    visit(output, {.name = "output",
                   .help = "write the scores to FILE",
                   .value = "FILE",
                   .file = FileUse::written,
                   .letter = 'o'});
    visit(threads, {.name = "threads",
                    .help = "number of threads (0: one for each processor)",
                    .value = "N",
                    .letter = 'j',
                    .alias = "paired-jobs",
                    .min = 0,
                    .max = 1024});
    utf8.fields(visit);
    visit.section("Scoring");
    visit(metrics, {.name = "metrics", .help = "metrics to compute", .letter = 'm', .only = kTranslationMetrics});
    visit(sentence_level, {.name = "sentence-level", .help = "score every line by itself", .alias = "sl"});
    visit.section("BLEU");
    visit(tokenize, {.name = "tokenize",
                     .help = "tokenisation for the n-grams (13a if not given, none with --d2l)",
                     .alias = "tok"});
    visit(lowercase, {.name = "lowercase", .help = "lower-case hypotheses and references first", .alias = "lc"});
    visit(smooth_method, {.name = "smooth-method", .help = "what replaces an n-gram precision of zero", .letter = 's'});
    visit(smooth_value, {.name = "smooth-value",
                         .help = "the value for floor (0.1 if not given) or add-k (1 if not given)",
                         .value = "X",
                         .alias = "sv",
                         .min = 0,
                         .max = 1e9});
    visit(max_order, {.name = "max-order", .help = "longest n-gram", .value = "N", .min = 1, .max = 16});
    visit(effective_order, {.name = "effective-order",
                            .help = "leave out n-grams that are longer than the text; on for scores of single lines"});
    visit(force, {.name = "force", .help = "do not warn if the text looks tokenised"});
    visit(multi_bleu, {.name = "multi-bleu", .help = "print the line that multi-bleu.perl prints for tokenised text"});
    visit(d2l, {.name = "d2l",
                .help = "score every line by the textbook's BLEU (0 to 1), with n-grams of up to K words",
                .value = "K",
                .min = 1,
                .max = 16});
    visit.section("chrF");
    visit(chrf.char_order, {.name = "chrf-char-order",
                            .help = "longest n-gram of characters",
                            .value = "N",
                            .alias = "cc",
                            .min = 0,
                            .max = 64});
    visit(chrf.word_order, {.name = "chrf-word-order",
                            .help = "longest n-gram of words; 2 makes it chrF++",
                            .value = "N",
                            .alias = "cw",
                            .min = 0,
                            .max = 64});
    visit(chrf.beta, {.name = "chrf-beta",
                      .help = "how many times recall weighs more than precision",
                      .value = "N",
                      .min = 0,
                      .max = 1000});
    visit(chrf.whitespace, {.name = "chrf-whitespace", .help = "include white space in the character n-grams"});
    visit(chrf.lowercase, {.name = "chrf-lowercase", .help = "lower-case hypotheses and references first"});
    visit(chrf.eps_smoothing,
          {.name = "chrf-eps-smoothing",
           .help = "count n-grams that are longer than the text with nearly 0, instead of leaving them out"});
    visit.section("TER");
    visit(ter.normalized, {.name = "ter-normalized", .help = "decode entities and split punctuation off words"});
    visit(ter.no_punct, {.name = "ter-no-punct", .help = "remove the marks . , ? : ; ! \" ( )"});
    visit(ter.asian_support, {.name = "ter-asian-support",
                              .help = "apply the two options above to Chinese characters and Asian marks, too"});
    visit(ter.case_sensitive, {.name = "ter-case-sensitive", .help = "do not lower-case"});
    visit.section("Trees");
    visit(evalb_params, {.name = "evalb-params",
                         .help = "evalb's parameter file (the parameters of COLLINS.prm if not given)",
                         .value = "FILE",
                         .file = FileUse::read});
    visit(evalb_unlabelled, {.name = "evalb-unlabelled", .help = "a bracket is right also with another label"});
    visit(evalb_gold_tags,
          {.name = "evalb-gold-tags", .help = "let the gold tree decide for both trees which words are punctuation"});
    visit(evalb_cutoff,
          {.name = "evalb-cutoff",
           .help = "the second part of --evalb-table is of sentences of at most N words (40 if not given)",
           .value = "N",
           .min = 0,
           .max = 1000000});
    visit(evalb_table, {.name = "evalb-table", .help = "print the table and the summary that evalb prints"});
    visit(on_bad_tree, {.name = "on-bad-tree",
                        .help = "what to do with a tree that is broken or has other words than the gold tree"});
    visit.section("Significance");
    visit(confidence, {.name = "confidence",
                       .help = "show the 95 % confidence interval of one system, by bootstrap resampling",
                       .alias = "ci"});
    visit(confidence_n, {.name = "confidence-n",
                         .help = "number of resamples for --confidence",
                         .value = "N",
                         .alias = "cin",
                         .min = 2,
                         .max = 1e7});
    visit(paired_bs, {.name = "paired-bs",
                      .help = "compare every system with the first by a paired bootstrap test",
                      .alias = "pbs"});
    visit(paired_bs_n, {.name = "paired-bs-n",
                        .help = "number of resamples for --paired-bs",
                        .value = "N",
                        .alias = "pbsn",
                        .min = 1,
                        .max = 1e7});
    visit(paired_ar, {.name = "paired-ar",
                      .help = "compare every system with the first by paired approximate randomisation",
                      .alias = "par"});
    visit(paired_ar_n, {.name = "paired-ar-n",
                        .help = "number of trials for --paired-ar",
                        .value = "N",
                        .alias = "parn",
                        .min = 1,
                        .max = 1e7});
    visit(seed, {.name = "seed", .help = "seed of the random numbers, which are NumPy's", .value = "N", .min = 0});
    visit(baseline, {.name = "baseline",
                     .help = "compare systems with this one, by --paired-bs unless --paired-ar is given",
                     .value = "HYP",
                     .file = FileUse::read});
    visit.section("Report");
    visit(score_only, {.name = "score-only", .help = "print only the numbers", .letter = 'b'});
    visit(width, {.name = "width",
                  .help = "number of decimals of a score (1 if not given, 3 with --d2l)",
                  .value = "N",
                  .letter = 'w',
                  .min = 0,
                  .max = 100});
    visit(format, {.name = "format",
                   .help = "output format (json if not given, but text for scores of lines and --by-length)",
                   .letter = 'f'});
    visit(signature, {.name = "signature", .help = "print the signature that the score would have, and stop"});
    visit(short_signature,
          {.name = "short", .help = "shorten the names in signatures, except in the JSON of a score", .alias = "sh"});
    visit(worst, {.name = "worst", .help = "show the N lines that score worst", .value = "N", .min = 1, .max = 1e9});
    visit(by_length, {.name = "by-length", .help = "show scores grouped by the number of words in the reference"});
    visit(fail_under,
          {.name = "fail-under", .help = "exit with 3 if a score of the first metric is worse than X", .value = "X"});
    visit(fail_drop,
          {.name = "fail-drop",
           .help = "exit with 3 if a system's first metric is more than X worse than --baseline, with p < 0.05",
           .value = "X",
           .min = 0});
    common.fields(visit);
  }
};

/// Scores hypotheses (options.input, or `in`) against options.references and writes the report to `out`. Reads all
/// files line by line at the same time. Memory does not grow with the files; only tests of significance keep
/// some numbers of 4 or 8 bytes for each statistic of each line and system, and for each thread. Returns the exit code:
/// 0; 3 when a score is worse than options.fail_under or options.fail_drop allows; or 1 when multi-bleu finds no
/// reference text. Throws UsageError when options contradict each other, and Error for unreadable, empty or unequally
/// long files.
int run_bleu(const BleuToolOptions& options, std::istream& in, std::ostream& out, Log& log);

/// Returns the name, purpose, usage and examples of `bleu`, and the option names of other toolkits.
ToolInfo bleu_tool_info();

}  // namespace heed
