#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/log.h"
#include "heed/optim/optimizer.h"

namespace heed {

/// A factor w of the Gaussian kernel, the inverse of its bandwidth, and the leave-one-out loss that w gives.
struct WidthStep {
  double w = 1, loss = 0;
};

/// Learns the factor w of the Gaussian kernel by `epochs` updates, each from the gradient of the leave-one-out loss of
/// all pairs (see leave_one_out_loss()). Returns w and the loss before the first update and after each update, that is,
/// epochs + 1 steps. `start` is the first w. x and y must have at least 2 elements. Throws Error if w or the
/// loss grows beyond all bounds.
std::vector<WidthStep> learn_width(std::span<const double> x, std::span<const double> y, double start,
                                   std::int64_t epochs, const OptimizerSettings& settings, Log& log);

}  // namespace heed
