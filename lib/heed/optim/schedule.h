#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "heed/config/fields.h"

namespace heed {

/// How the learning rate moves after it has risen in a straight line for `warmup` updates. constant: it stays at its
/// peak. inverse_sqrt: it falls as 1 / sqrt(update) (Vaswani et al. 2017). linear, cosine: it falls to 0 at the end of
/// training, in a straight line or along half a cosine (Loshchilov and Hutter 2017).
enum class ScheduleKind { inverse_sqrt, constant, linear, cosine };

template <>
struct EnumNames<ScheduleKind> {
  static constexpr std::pair<ScheduleKind, std::string_view> values[] = {{ScheduleKind::inverse_sqrt, "inverse-sqrt"},
                                                                         {ScheduleKind::constant, "constant"},
                                                                         {ScheduleKind::linear, "linear"},
                                                                         {ScheduleKind::cosine, "cosine"}};
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::inverse_sqrt;
  double peak = 1e-3;       ///< the rate at the end of the warm-up
  std::int64_t warmup = 0;  ///< updates

  /// The rate of update `step` (from 1). `progress` is the share of the whole training done before it, 0 to 1; only
  /// linear and cosine look at it.
  double rate(std::int64_t step, double progress) const;
  /// Whether the rate depends on where training ends.
  bool needs_end() const { return kind == ScheduleKind::linear || kind == ScheduleKind::cosine; }
};

}  // namespace heed
