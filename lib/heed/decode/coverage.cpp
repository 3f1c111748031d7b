#include "heed/decode/coverage.h"

#include <algorithm>
#include <cmath>

namespace heed {

void rank_by_coverage(Translator& translator, const PackedIds& source, const SearchOptions& options,
                      std::vector<std::vector<Hypothesis>>& hypotheses) {
  for (std::size_t s = 0; s < hypotheses.size(); ++s) {
    const std::span<const std::int32_t> ids = source.sequence(static_cast<int>(s));
    const std::vector<std::int32_t> words(ids.begin(), ids.end() - 1);
    Batch pairs;
    for (const Hypothesis& each : hypotheses[s]) pairs.add(words, each.ids);
    const std::vector<std::vector<float>> maps = translator.attention(pairs);
    for (std::size_t h = 0; h < maps.size(); ++h) {
      Hypothesis& hypothesis = hypotheses[s][h];
      double penalty = 0;
      for (std::size_t i = 0; i < words.size(); ++i) {
        double covered = 0;
        for (std::size_t j = 0; j < hypothesis.log_probabilities.size(); ++j)
          covered += static_cast<double>(maps[h][j * ids.size() + i]);
        // A weight may be rounded to 0.
        penalty += std::log(std::clamp(covered, 1e-30, 1.0));
      }
      hypothesis.score += options.coverage_penalty * penalty;
    }
    keep_best(hypotheses[s], options.results());
  }
}

}  // namespace heed
