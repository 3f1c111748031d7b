#pragma once

#include "heed/tensor/tensor.h"

namespace heed {

/// How the model encodes positions: by the interleaved sinusoids of Vaswani et al. 2017 (section 3.5), by the
/// concatenated sinusoids of tensor2tensor, or by one learned vector for each position (Gehring et al. 2017).
enum class PositionEncoding { interleaved, concatenated, learned };

/// Fills a table [L, D] of sinusoids: row p is the encoding of position p, counted from 0. Throws Error where D is odd.
/// Interleaved: column 2i is sin(angle) and column 2i + 1 is cos(angle), with angle = p * 10000^(-2i / D).
/// Concatenated: column i is sin(angle) and column D/2 + i is cos(angle), with angle = p * 10000^(-i / (D/2 - 1)).
template <class T>
void fill_sinusoids(PositionEncoding kind, Tensor<T> table);

}  // namespace heed
