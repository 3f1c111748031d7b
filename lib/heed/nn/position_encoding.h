#pragma once

#include "heed/tensor/tensor.h"

namespace heed {

/// How positions enter: interleaved sinusoids of the paper (section 3.5), the concatenated ones of tensor2tensor, or a
/// learned vector a position (Gehring et al. 2017).
enum class PositionEncoding { interleaved, concatenated, learned };

/// Fills rows [L, D] of a sinusoid table, positions counted from 0, D even.
/// Interleaved: sin at column 2i, cos at 2i + 1, angle position * 10000^(-2i / D).
/// Concatenated: sin at i, cos at D/2 + i, angle position * 10000^(-i / (D/2 - 1)).
template <class T>
void fill_sinusoids(PositionEncoding kind, Tensor<T> table);

}  // namespace heed
