#include "heed/metrics/metric.h"

#include <algorithm>
#include <utility>

namespace heed {

std::string signature(const TranslationMetric& metric, std::size_t references,
                      const std::optional<Resampling>& resampling) {
  std::string out = "nrefs:" + std::to_string(references);
  if (resampling)
    out += "|" + std::string(resampling->test) + ":" + std::to_string(resampling->samples) +
           "|seed:" + std::to_string(resampling->seed);
  return out + "|" + metric.settings() + "|version:heed." HEED_VERSION;
}

std::string short_signature(std::string_view signature) {
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"nrefs:", "#:"},  {"seed:", "rs:"},           {"case:", "c:"},   {"eff:", "e:"},
      {"smooth:", "s:"}, {"space:", "s:"},           {"norm:", "nr:"},  {"punct:", "pn:"},
      {"asian:", "as:"}, {"tok:tercom", "t:tercom"}, {"version:", "v:"}};
  std::string out;
  while (!signature.empty()) {
    std::string_view part = signature.substr(0, signature.find('|'));
    signature.remove_prefix(std::min(signature.size(), part.size() + 1));
    if (!out.empty()) out += '|';
    for (const auto& [name, abbreviation] : kShort) {
      if (!part.starts_with(name)) continue;
      out += abbreviation;
      part.remove_prefix(name.size());
      break;
    }
    out += part;
  }
  return out;
}

}  // namespace heed
