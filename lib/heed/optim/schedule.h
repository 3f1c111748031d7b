#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "heed/config/fields.h"

namespace heed {

/// The course of the learning rate after the warm-up, during which the rate rises linearly from 0 to a peak:
/// `inverse_sqrt` falls as 1 / sqrt(update) (Vaswani et al. 2017); `constant` stays at the peak; `linear` falls
/// linearly, and `cosine` along half a cosine (Loshchilov and Hutter 2017), to 0 at the end of training.
enum class ScheduleKind { inverse_sqrt, constant, linear, cosine };

template <>
struct EnumNames<ScheduleKind> {
  static constexpr std::pair<ScheduleKind, std::string_view> values[] = {{ScheduleKind::inverse_sqrt, "inverse-sqrt"},
                                                                         {ScheduleKind::constant, "constant"},
                                                                         {ScheduleKind::linear, "linear"},
                                                                         {ScheduleKind::cosine, "cosine"}};
};

/// The learning rate as a function of the number of the update.
struct Schedule {
  ScheduleKind kind = ScheduleKind::inverse_sqrt;
  double peak = 1e-3;       ///< the learning rate at the end of the warm-up
  std::int64_t warmup = 0;  ///< length of the warm-up, in updates

  /// Returns the learning rate of update `step` (counted from 1). `progress` is the fraction of the whole training that
  /// was done before this update, 0 to 1; only `linear` and `cosine` use `progress`.
  double rate(std::int64_t step, double progress) const;
  /// Tells whether the learning rate depends on when training will end, as with `linear` and `cosine`.
  bool needs_end() const { return kind == ScheduleKind::linear || kind == ScheduleKind::cosine; }
};

}  // namespace heed
