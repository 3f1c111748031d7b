#pragma once

#include <cstdint>

#include "heed/autograd/graph.h"

namespace heed {

/// The elements that a dropout keeps. The forward pass draws the mask, and the backward pass applies the same mask. An
/// absent mask (`kept` is null) drops nothing and has scale 1.
template <class T>
struct DropoutMask {
  const std::uint8_t* kept = nullptr;  ///< one byte for each element: 1 = the element is kept, 0 = it is dropped
  T scale = 1;                         ///< the factor of kept elements: 1 / (1 - p), with p rounded to 65536ths

  explicit operator bool() const { return kept != nullptr; }
  /// Returns the mask of the elements from `begin` on.
  DropoutMask from(std::int64_t begin) const { return {kept ? kept + begin : nullptr, scale}; }
};

/// Returns the probability p in 65536ths, rounded to the nearest. Throws Error where p is not in [0, 1].
std::uint32_t dropout_threshold(double p);

/// Draws a dropout mask kept[0 .. n): element i is dropped where 16 random bits, as a number, are below `threshold`.
/// The mask is the same for every vector length. With j = i % 128, the 16 bits of element i come from the stream's
/// Philox block number 16 (i / 128) + j % 32 / 2, from word j / 32 of the block: the low half for even i, the high half
/// for odd i. So 128 elements use 16 blocks, and a vector of up to 16 lanes computes one block in each lane.
void fill_dropout_mask(const RandomStream& stream, std::uint32_t threshold, std::int64_t n, std::uint8_t* kept);

/// Draws the mask of the graph's next dropout, for n elements and the probability p. Where p rounds to 0 or the graph
/// is not recording, returns an absent mask and uses no random stream. With p = 1 every element is dropped.
template <class T>
DropoutMask<T> draw_dropout_mask(Graph<T>& graph, std::int64_t n, double p) {
  const std::uint32_t threshold = dropout_threshold(p);
  if (threshold == 0 || !graph.recording()) return {};
  auto* kept = static_cast<std::uint8_t*>(graph.arena().allocate(static_cast<std::size_t>(n)));
  fill_dropout_mask(graph.next_dropout(), threshold, n, kept);
  return {kept, threshold == 65536 ? T(0) : static_cast<T>(65536.0 / (65536.0 - threshold))};
}

}  // namespace heed
