#pragma once

#include "heed/tensor/tensor.h"

namespace heed {

/// How the model encodes positions. A vector for each position that is added to the token's embedding: the interleaved
/// sinusoids of Vaswani et al. 2017 (section 3.5), the concatenated sinusoids of tensor2tensor, or one learned vector
/// for each position (Gehring et al. 2017). Terms in each self-attention: learned vectors for the distance of query and
/// key (`relative`, Shaw et al. 2018), a penalty that grows with the distance (`alibi`, Press et al. 2022), a rotation
/// of query and key (`rotary`, Su et al. 2021), or a learned number for the distance (`t5`, Raffel et al. 2020).
/// `none`: the model does not encode positions.
enum class PositionEncoding { interleaved, concatenated, learned, none, relative, alibi, rotary, t5 };

/// Tells whether sinusoids are added to the embeddings.
constexpr bool is_sinusoidal(PositionEncoding kind) {
  return kind == PositionEncoding::interleaved || kind == PositionEncoding::concatenated;
}
/// Tells whether the self-attention layers encode the positions.
constexpr bool is_within_attention(PositionEncoding kind) {
  return kind == PositionEncoding::relative || kind == PositionEncoding::alibi || kind == PositionEncoding::rotary ||
         kind == PositionEncoding::t5;
}

/// Fills a table of sinusoids: row p is the encoding of position p, counted from 0.
/// Interleaved [L, D]: column 2i is sin(angle) and column 2i + 1 is cos(angle), with angle = p * 10000^(-2i / D).
/// Concatenated [L, D]: column i is sin(angle) and column D/2 + i is cos(angle), with angle = p * 10000^(-i / (D/2 -
/// 1)).
/// Rotary [L, 2d] for heads of d columns: the columns 2i and 2i + 1 are cos(angle), column d + 2i is -sin(angle) and
/// column d + 2i + 1 is sin(angle), with angle = p * 10000^(-2i / d).
/// Throws Error where D or d is odd.
template <class T>
void fill_sinusoids(PositionEncoding kind, Tensor<T> table);

}  // namespace heed
