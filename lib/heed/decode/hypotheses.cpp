#include "heed/decode/hypotheses.h"

#include <algorithm>

#include "heed/base/error.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {

bool is_forbidden(std::int32_t id) {
  return id == kPadId || id == kUnknownId || id == kStartId;
}

void keep_best(std::vector<Hypothesis>& hypotheses, int count) {
  std::stable_sort(hypotheses.begin(), hypotheses.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  if (hypotheses.size() > static_cast<std::size_t>(count)) hypotheses.resize(static_cast<std::size_t>(count));
}

void fail_not_a_number() {
  throw Error("the model's scores are not numbers (NaN): its weights are damaged or far too large (train it again)");
}

}  // namespace heed
