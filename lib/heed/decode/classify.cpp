#include "heed/decode/classify.h"

#include <algorithm>
#include <cmath>

namespace heed {

std::vector<std::vector<Hypothesis>> classify(StepModel& model, const PackedIds& source, const SearchOptions& options) {
  const auto count = std::min<std::int64_t>(options.results(), model.vocabulary());
  const auto sources = static_cast<std::size_t>(source.sequences()), best = static_cast<std::size_t>(count);
  model.start(source);
  std::vector<float> scores(sources * best);
  std::vector<std::int32_t> classes(sources * best);
  Arena arena;
  CpuContext device{arena};
  model.step(std::vector<std::int32_t>(sources, kStartId), device, count, scores.data(), classes.data());
  std::vector<std::vector<Hypothesis>> out(sources);
  for (std::size_t i = 0; i < sources * best; ++i) {
    const auto score = static_cast<double>(scores[i]);
    if (std::isnan(score)) fail_not_a_number();
    out[i / best].push_back({{classes[i] + kReservedIds}, {scores[i]}, score, score});
  }
  return out;
}

}  // namespace heed
