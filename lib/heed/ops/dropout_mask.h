#pragma once

#include <cstdint>

#include "heed/autograd/graph.h"

namespace heed {

/// Which elements dropout keeps: one byte each, 1 kept, 0 dropped. Kept as drawn for the way back. Absent (null) where
/// nothing is dropped; then scale is 1.
template <class T>
struct DropoutMask {
  const std::uint8_t* kept = nullptr;
  T scale = 1;  ///< kept values are multiplied by this: 1 / (1 - p), with p as rounded

  explicit operator bool() const { return kept != nullptr; }
  /// The mask of the elements from `begin` on.
  DropoutMask from(std::int64_t begin) const { return {kept ? kept + begin : nullptr, scale}; }
};

/// p in 65536ths, rounded to nearest. Throws Error where p is not in [0, 1].
std::uint32_t dropout_threshold(double p);

/// Fills kept[0 .. n): element i is dropped where its 16 random bits are below the threshold. With j = i % 128, the
/// bits are those of Philox block 16 (i / 128) + j % 32 / 2 of the stream, of its word j / 32 the low half for even and
/// the high half for odd i. (128 elements are 16 blocks, each vector lane a block, for any vector length up to 16.)
void fill_dropout_mask(const RandomStream& stream, std::uint32_t threshold, std::int64_t n, std::uint8_t* kept);

/// The mask of the next dropout in the graph, for n elements: absent, and no stream used, where p rounds to 0 or the
/// graph is not recording. With p = 1 everything is dropped.
template <class T>
DropoutMask<T> draw_dropout_mask(Graph<T>& graph, std::int64_t n, double p) {
  const std::uint32_t threshold = dropout_threshold(p);
  if (threshold == 0 || !graph.recording()) return {};
  auto* kept = static_cast<std::uint8_t*>(graph.arena().allocate(static_cast<std::size_t>(n)));
  fill_dropout_mask(graph.next_dropout(), threshold, n, kept);
  return {kept, threshold == 65536 ? T(0) : static_cast<T>(65536.0 / (65536.0 - threshold))};
}

}  // namespace heed
