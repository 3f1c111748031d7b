#pragma once

#include "heed/tensor/cuda_language.h"

namespace heed {

/// Returns the number of the sequence to which a row of a packed batch belongs. `offsets` are the sequences + 1 offsets
/// of PackedOffsets, in the memory of the GPU.
__device__ inline int sequence_of_row(const std::int32_t* offsets, int sequences, std::int64_t row) {
  int low = 0, high = sequences;  // the sequence is one of low ... high - 1
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (offsets[middle] <= row ? low : high) = middle;
  }
  return low;
}

}  // namespace heed
