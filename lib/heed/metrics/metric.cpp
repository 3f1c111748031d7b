#include "heed/metrics/metric.h"

namespace heed {

std::string signature(const TranslationMetric& metric, std::size_t references,
                      const std::optional<Resampling>& resampling) {
  std::string out = "nrefs:" + std::to_string(references);
  if (resampling)
    out += "|" + std::string(resampling->test) + ":" + std::to_string(resampling->samples) +
           "|seed:" + std::to_string(resampling->seed);
  return out + "|" + metric.settings() + "|version:heed." HEED_VERSION;
}

}  // namespace heed
