#include "heed/decode/search.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"
#include "heed/decode/beam_search.h"
#include "heed/decode/exhaustive_search.h"
#include "heed/decode/sampling.h"
#include "heed/decode/score_rules.h"

namespace heed {

void SearchOptions::validate_n_best() const {
  if (search == SearchKind::beam && n_best > beam_size)
    throw UsageError("--n-best " + std::to_string(n_best) + " is more than --beam-size " + std::to_string(beam_size) +
                     " (raise --beam-size)");
}

void SearchOptions::validate() const {
  if (beam_size % beam_groups != 0)
    throw UsageError("--beam-groups " + std::to_string(beam_groups) + " does not divide --beam-size " +
                     std::to_string(beam_size) + " (give a multiple of " + std::to_string(beam_groups) + " with -b)");
  if (min_output_length > max_output_length)
    throw UsageError("--min-output-length " + std::to_string(min_output_length) + " is more than --max-output-length " +
                     std::to_string(max_output_length));
}

int SearchOptions::longest(int source_length) const {
  const double by_source = max_length_factor * (source_length - 1) + 10;
  return std::max(min_output_length, static_cast<int>(std::min<double>(max_output_length, by_source)));
}

double SearchOptions::final_score(double sum, int length) const {
  length = std::max(length, 1);
  if (length_penalty > 0) return sum / std::pow((5.0 + length) / 6.0, length_penalty);
  return normalize > 0 ? sum / std::pow(static_cast<double>(length), normalize) : sum;
}

std::vector<std::vector<Hypothesis>> search(StepModel& model, const PackedIds& source, const SearchOptions& options,
                                            const ScoreRule* first) {
  if (source.sequences() == 0) return {};
  const ScoreRules others = score_rules(options);
  std::vector<const ScoreRule*> rules;
  if (first) rules.push_back(first);
  for (const auto& rule : others) rules.push_back(rule.get());
  if (options.search == SearchKind::exhaustive) {
    std::vector<std::vector<Hypothesis>> out;
    for (int s = 0; s < source.sequences(); ++s) {
      PackedIds one;
      one.append(source.sequence(s));
      RuledStepModel ruled(model, rules, s);
      out.push_back(exhaustive_search(rules.empty() ? model : ruled, one, options));
    }
    return out;
  }
  RuledStepModel ruled(model, rules);
  StepModel& used = rules.empty() ? model : ruled;
  return options.search == SearchKind::sample ? sample(used, source, options) : beam_search(used, source, options);
}

}  // namespace heed
