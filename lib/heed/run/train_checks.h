#pragma once

#include "heed/run/train.h"

namespace heed {

/// Throws UsageError for all that is wrong with the options of `train` themselves: options that contradict each other,
/// that have no effect together, or that are missing. Reads no file. `ranks` is the number of processes that train
/// together.
void check_options(const TrainOptions& options, int ranks);

}  // namespace heed
