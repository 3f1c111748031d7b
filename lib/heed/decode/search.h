#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/base/error.h"
#include "heed/config/fields.h"
#include "heed/decode/hypotheses.h"
#include "heed/decode/step_model.h"

namespace heed {

class ScoreRule;

enum class SearchKind { beam, exhaustive, sample };

template <>
struct EnumNames<SearchKind> {
  static constexpr std::pair<SearchKind, std::string_view> values[] = {
      {SearchKind::beam, "beam"}, {SearchKind::exhaustive, "exhaustive"}, {SearchKind::sample, "sample"}};
};

/// The options of a search for translations.
struct SearchOptions {
  SearchKind search = SearchKind::beam;
  int beam_size = 4;
  /// The exponent A of --normalize: scores are divided by length^A.
  double normalize = 1;
  /// The exponent A of --length-penalty: if not 0, scores are divided by ((5 + length) / 6)^A (GNMT), not by length^A.
  double length_penalty = 0;
  /// The weight B of the coverage penalty (GNMT), see decode/coverage.h; 0: none.
  double coverage_penalty = 0;
  /// The number of translations to print for each line. With 0, the best one is printed as plain text.
  int n_best = 0;
  double max_length_factor = 3;
  int max_output_length = 1000;
  int min_output_length = 0;
  /// No N pieces in a row occur twice in a translation; 0: no such rule.
  int no_repeat_ngram_size = 0;
  /// The log-probability of a piece that the translation has already is multiplied by this factor, at least 1.
  double repetition_penalty = 1;
  /// The number of groups of diverse beam search, which divides beam_size; 1 is ordinary beam search.
  int beam_groups = 1;
  /// Diverse beam search: the amount by which a continuation by a piece ranks lower, for each hypothesis of an earlier
  /// group that continues by the same piece in this step.
  double diversity_strength = 0.5;
  /// The most prefixes of translations that exhaustive search continues.
  int max_expansions = 100000;
  /// The number of iterations of mask-predict (see decode/mask_predict.h), for models that predict all positions at
  /// once.
  int iterations = 4;
  /// The number of lengths with which mask-predict tries to translate a source.
  int length_candidates = 3;
  double temperature = 1;
  /// Sampling draws from the top_k likeliest pieces only; 0: from all pieces.
  int top_k = 0;
  /// Sampling draws only from the likeliest pieces whose probabilities add up to top_p (nucleus sampling, Holtzman et
  /// al. 2020); 1: from all pieces.
  double top_p = 1;
  std::uint64_t seed = 1;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Search");
    visit(search, {.name = "search", .help = "beam search, exact (exhaustive) search, or random samples of the model"});
    visit(beam_size, {.name = "beam-size",
                      .help = "number of hypotheses kept in each step; 1 is greedy search",
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
                           .help = "divide scores by ((5 + length) / 6)^A instead of length^A; 0: --normalize decides",
                           .value = "A",
                           .min = 0,
                           .max = 10});
    visit(coverage_penalty, {.name = "coverage-penalty",
                             .help = "add B times GNMT's coverage penalty to scores, for words that nothing translates",
                             .value = "B",
                             .min = 0,
                             .max = 100,
                             .implicit = "0.2"});
    visit(n_best, {.name = "n-best",
                   .help = "print the N best translations of each line, with number and score",
                   .value = "N",
                   .min = 0,
                   .max = 1000,
                   .implicit = "4"});
    visit(max_length_factor, {.name = "max-length-factor",
                              .help = "longest output: F times the source's pieces, plus 10",
                              .value = "F",
                              .min = 0,
                              .max = 1000});
    visit(max_output_length,
          {.name = "max-output-length", .help = "longest output, in pieces", .value = "N", .min = 1, .max = 100000});
    visit(min_output_length,
          {.name = "min-output-length", .help = "shortest output, in pieces", .value = "N", .min = 0, .max = 100000});
    visit(no_repeat_ngram_size, {.name = "no-repeat-ngram-size",
                                 .help = "let no N pieces in a row occur twice in a translation; 0: allow it",
                                 .value = "N",
                                 .min = 0,
                                 .max = 1000});
    visit(repetition_penalty, {.name = "repetition-penalty",
                               .help = "multiply the log-probability of pieces that a translation has already",
                               .value = "F",
                               .min = 1,
                               .max = 100});
    visit(beam_groups, {.name = "beam-groups",
                        .help = "diverse beam search: the beam is G groups that avoid each other's pieces",
                        .value = "G",
                        .min = 1,
                        .max = 1000});
    visit(diversity_strength, {.name = "diversity-strength",
                               .help = "what a piece costs that an earlier group has in the same place",
                               .value = "L",
                               .min = 0,
                               .max = 100});
    visit(max_expansions, {.name = "max-expansions",
                           .help = "most prefixes of translations that --search exhaustive continues, for each line",
                           .value = "N",
                           .min = 1,
                           .max = 100000000});
    visit(iterations, {.name = "iterations",
                       .help = "number of iterations of a model that predicts all pieces at once (--task nat)",
                       .value = "N",
                       .min = 1,
                       .max = 1000});
    visit(length_candidates, {.name = "length-candidates",
                              .help = "number of lengths with which such a model tries to translate a line",
                              .value = "N",
                              .min = 1,
                              .max = 1000});
    visit(temperature, {.name = "temperature",
                        .help = "temperature of --search sample; 0 is greedy search",
                        .value = "T",
                        .min = 0,
                        .max = 100});
    visit(top_k, {.name = "top-k",
                  .help = "sample from the K likeliest pieces; 0: from all",
                  .value = "K",
                  .min = 0,
                  .max = 1e9});
    visit(top_p, {.name = "top-p",
                  .help = "sample from the likeliest pieces whose probabilities add up to P",
                  .value = "P",
                  .min = 0,
                  .max = 1});
    visit(seed, {.name = "seed", .help = "seed of --search sample", .value = "N", .min = 0});
  }

  /// Returns how many hypotheses the user wants for each line.
  int results() const { return n_best > 0 ? n_best : 1; }
  /// Limits translations to the sequences of a model, of at most `most` tokens with `</s>`.
  void limit_sequences(int most) { max_output_length = std::min(max_output_length, std::max(1, most - 1)); }
  /// Throws UsageError when options contradict each other.
  void validate() const;
  /// Throws UsageError when beam search does not give as many results as the user wants.
  void validate_n_best() const;
  /// Returns the maximal number of pieces in the translation of a source sentence with `source_length` pieces.
  /// `source_length` counts `</s>`; the returned number does not.
  int longest(int source_length) const;
  /// Returns the score of a finished hypothesis: the sum of its log-probabilities, divided by the length penalty.
  /// `length` counts `</s>`; an empty hypothesis without `</s>` has the score of length 1.
  double final_score(double sum, int length) const;
  double final_score(const Hypothesis& hypothesis) const {
    return final_score(hypothesis.sum, static_cast<int>(hypothesis.log_probabilities.size()));
  }
};

/// The error of exhaustive search when it has passed SearchOptions::max_expansions.
class SearchTooLong : public Error {
 public:
  using Error::Error;
};

/// Translates a batch of sources that end with `</s>`. Returns for each source at most options.results() hypotheses,
/// best first. The hypotheses of a source do not depend on the other sources of the batch, and never contain `<pad>`,
/// `<unk>` or `<s>`. The next tokens follow the rule `first`, unless it is null, and then the rules that the options
/// ask for. Throws Error when the model computes NaN scores, and SearchTooLong when exhaustive search gives up on any
/// of the sources.
std::vector<std::vector<Hypothesis>> search(StepModel& model, const PackedIds& source, const SearchOptions& options,
                                            const ScoreRule* first = nullptr);

}  // namespace heed
