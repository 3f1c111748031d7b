#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/config/fields.h"
#include "heed/decode/hypotheses.h"
#include "heed/decode/step_model.h"

namespace heed {

enum class SearchKind { beam, sample };

template <>
struct EnumNames<SearchKind> {
  static constexpr std::pair<SearchKind, std::string_view> values[] = {{SearchKind::beam, "beam"},
                                                                       {SearchKind::sample, "sample"}};
};

/// How translations are searched for.
struct SearchOptions {
  SearchKind search = SearchKind::beam;
  int beam_size = 4;
  double normalize = 1;       ///< A of score / length^A
  double length_penalty = 0;  ///< A of GNMT's score / ((5 + length) / 6)^A; replaces `normalize` where not 0
  int n_best = 0;             ///< 0: the best one
  double max_length_factor = 3;
  int max_output_length = 1000;
  int min_output_length = 0;
  double temperature = 1;
  int top_k = 0;     ///< 0: all
  double top_p = 1;  ///< nucleus (Holtzman et al. 2020)
  std::uint64_t seed = 1;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Search");
    visit(search, {.name = "search", .help = "beam search, or sampling from the model"});
    visit(beam_size, {.name = "beam-size",
                      .help = "hypotheses kept; 1 is greedy",
                      .value = "N",
                      .letter = 'b',
                      .min = 1,
                      .max = 1000});
    visit(normalize, {.name = "normalize",
                      .help = "divide scores by length^A",
                      .value = "A",
                      .letter = 'n',
                      .min = 0,
                      .max = 10,
                      .implicit = "1"});
    visit(length_penalty, {.name = "length-penalty",
                           .help = "divide scores by ((5 + length) / 6)^A instead",
                           .value = "A",
                           .min = 0,
                           .max = 10});
    visit(n_best, {.name = "n-best",
                   .help = "print the N best of each line, 'line ||| text ||| score'",
                   .value = "N",
                   .min = 0,
                   .max = 1000,
                   .implicit = "4"});
    visit(max_length_factor, {.name = "max-length-factor",
                              .help = "longest output, in source lengths (plus 10)",
                              .value = "F",
                              .min = 0,
                              .max = 1000});
    visit(max_output_length,
          {.name = "max-output-length", .help = "longest output, in pieces", .value = "N", .min = 1, .max = 100000});
    visit(min_output_length,
          {.name = "min-output-length", .help = "shortest output, in pieces", .value = "N", .min = 0, .max = 100000});
    visit(temperature, {.name = "temperature",
                        .help = "of --search sample; 0 takes the likeliest",
                        .value = "T",
                        .min = 0,
                        .max = 100});
    visit(
        top_k,
        {.name = "top-k", .help = "sample from the K likeliest pieces; 0 is all", .value = "K", .min = 0, .max = 1e9});
    visit(top_p, {.name = "top-p",
                  .help = "sample from the likeliest pieces that add up to P",
                  .value = "P",
                  .min = 0,
                  .max = 1});
    visit(seed, {.name = "seed", .help = "of --search sample", .value = "N", .min = 0});
  }

  /// Hypotheses a line asked for.
  int results() const { return n_best > 0 ? n_best : 1; }
  /// Throws UsageError where options do not fit together.
  void validate() const;
  /// Longest output for a source of so many pieces (its </s> included), </s> not counted.
  int longest(int source_length) const;
  /// A finished hypothesis' score: the sum of its log-probabilities, normalised. `length` counts </s>.
  double final_score(double sum, int length) const;
};

/// Translates a batch: for each source (ending with </s>) its hypotheses, best first, at most options.results() of
/// them. What a source gives does not depend on the others of the batch. `<pad>`, `<unk>` and `<s>` are never produced.
/// Throws Error where the model's scores are NaN.
std::vector<std::vector<Hypothesis>> search(StepModel& model, const PackedIds& source, const SearchOptions& options);

}  // namespace heed
