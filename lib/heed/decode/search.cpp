#include "heed/decode/search.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"
#include "heed/decode/beam_search.h"
#include "heed/decode/sampling.h"

namespace heed {

void SearchOptions::validate() const {
  if (search == SearchKind::beam && n_best > beam_size)
    throw UsageError("--n-best " + std::to_string(n_best) + " is more than --beam-size " + std::to_string(beam_size) +
                     " (raise --beam-size)");
  if (min_output_length > max_output_length)
    throw UsageError("--min-output-length " + std::to_string(min_output_length) + " is more than --max-output-length " +
                     std::to_string(max_output_length));
}

int SearchOptions::longest(int source_length) const {
  const double by_source = max_length_factor * source_length + 10;
  return std::max(min_output_length, static_cast<int>(std::min<double>(max_output_length, by_source)));
}

double SearchOptions::final_score(double sum, int length) const {
  if (length_penalty > 0) return sum / std::pow((5.0 + length) / 6.0, length_penalty);
  return normalize > 0 ? sum / std::pow(static_cast<double>(length), normalize) : sum;
}

std::vector<std::vector<Hypothesis>> search(StepModel& model, const PackedIds& source, const SearchOptions& options) {
  if (source.sequences() == 0) return {};
  return options.search == SearchKind::sample ? sample(model, source, options) : beam_search(model, source, options);
}

}  // namespace heed
