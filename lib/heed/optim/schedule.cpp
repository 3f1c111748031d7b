#include "heed/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heed {

double Schedule::rate(std::int64_t step, double progress) const {
  const double t = static_cast<double>(step), w = static_cast<double>(warmup);
  if (step < warmup) return peak * t / w;
  switch (kind) {
    case ScheduleKind::constant:
      return peak;
    case ScheduleKind::inverse_sqrt:
      return peak * std::sqrt(std::max(w, 1.0) / t);
    case ScheduleKind::linear:
    case ScheduleKind::cosine:
      break;
  }
  if (step == warmup) return peak;  // even if the training ends with this update
  // `progress` is the fraction of the whole training that is done. `start` is the value of `progress` at the end of the
  // warm-up, estimated as if all updates so far had made equal progress. `rest` is the done fraction of the training
  // after the warm-up.
  const double start = step > 1 ? std::min(1.0, progress * w / (t - 1)) : 0;
  const double rest = start < 1 ? std::clamp((progress - start) / (1 - start), 0.0, 1.0) : 1;
  return kind == ScheduleKind::linear ? peak * (1 - rest) : peak * (1 + std::cos(std::numbers::pi * rest)) / 2;
}

}  // namespace heed
