#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "heed/autograd/graph.h"
#include "heed/base/error.h"

namespace heed {

/// A dropout mask, which says for each element of a tensor whether dropout keeps the element. The forward pass draws
/// the mask at random, and the backward pass applies the same mask. An absent mask (`kept` is null) drops nothing and
/// has scale 1.
template <class T>
struct DropoutMask {
  const std::uint8_t* kept = nullptr;  ///< one byte for each element: 1 = the element is kept, 0 = it is dropped
  /// The factor of kept elements: 1 / (1 - p), where the probability p is rounded to a multiple of 1/65536.
  T scale = 1;

  explicit operator bool() const { return kept != nullptr; }
  /// Returns the part of the mask for the elements from index `begin` on.
  DropoutMask from(std::int64_t begin) const { return {kept ? kept + begin : nullptr, scale}; }
};

/// Returns 65536 p, rounded to the nearest integer, for the dropout probability p. Throws Error where p is not in [0,
/// 1].
std::uint32_t dropout_threshold(double p);

/// Returns the factor of the elements that are kept: 1 / (1 - p) for p = threshold / 65536, and 0 where none is kept.
template <class T>
T dropout_scale(std::uint32_t threshold) {
  return threshold == 65536 ? T(0) : static_cast<T>(65536.0 / (65536.0 - threshold));
}

/// Draws a dropout mask kept[0 .. n): element i is dropped where 16 random bits, read as a number, are below
/// `threshold`. The random bits come from Philox, a random generator that computes block number b, four words of 32
/// bits, from b and a key. With j = i % 128, element i takes its 16 bits from the stream's block number 16 (i / 128) +
/// j % 32 / 2, from word j / 32 of the block: the low half for even i, the high half for odd i. So 128 elements use 16
/// blocks. The mask is the same for every vector length.
void fill_dropout_mask(const RandomStream& stream, std::uint32_t threshold, std::int64_t n, std::uint8_t* kept);

/// The random numbers of a sequence's part of a dropout mask, and its number of elements.
struct DropoutPart {
  RandomStream stream;
  std::int64_t elements = 0;
};
/// Draws a dropout mask of several parts, one after another (see fill_dropout_mask()), and sets `slack` bytes behind it
/// to 0.
void draw_dropout_parts(CpuContext& device, std::span<const DropoutPart> parts, std::uint32_t threshold,
                        std::int64_t slack, std::uint8_t* kept);
void draw_dropout_parts(CudaContext& device, std::span<const DropoutPart> parts, std::uint32_t threshold,
                        std::int64_t slack, std::uint8_t* kept);

/// Draws the mask of the graph's next dropout for the elements of several sequences, with the probability p, which is
/// rounded to a multiple of 1/65536. length(b) is the number of elements of sequence b, and `size` the sum of all
/// lengths; behind them, the mask has `slack` zeros. Element i of a sequence is decided by element i of the sequence's
/// stream of random numbers. Where the rounded p is 0 or the graph is not recording, returns an absent mask and counts
/// no dropout op. With p = 1 every element is dropped.
template <class T, class Length>
DropoutMask<T> draw_dropout_mask(Graph<T>& graph, double p, int sequences, std::int64_t size, Length length,
                                 std::int64_t slack = 0) {
  const std::uint32_t threshold = dropout_threshold(p);
  if (threshold == 0 || !graph.recording()) return {};
  auto* const kept = static_cast<std::uint8_t*>(graph.arena().allocate(static_cast<std::size_t>(size + slack)));
  const DropoutStreams streams = graph.next_dropout();
  const ArenaScope scope(graph.host_arena());
  const Tensor<DropoutPart> parts = graph.host_arena().template tensor<DropoutPart>({sequences});
  for (int b = 0; b < sequences; ++b) parts[b] = {streams.of(b), length(b)};
  graph.run([&](auto& device) { draw_dropout_parts(device, parts.span(), threshold, slack, kept); });
  return {kept, dropout_scale<T>(threshold)};
}

/// Draws the mask of the graph's next dropout for a tensor [rows, columns], whose rows belong to the sequences that
/// Graph::set_rows() has set. Throws Error where these have another number of rows.
template <class T>
DropoutMask<T> draw_dropout_mask(Graph<T>& graph, std::int64_t rows, std::int64_t columns, double p) {
  if (dropout_threshold(p) == 0 || !graph.recording()) return {};
  const PackedOffsets sequences = graph.rows();
  if (sequences.offsets.empty())
    return draw_dropout_mask(graph, p, 1, rows * columns, [&](int) { return rows * columns; });
  if (sequences.tokens() != rows)
    throw Error("internal: dropout: " + std::to_string(rows) + " rows, but the sequences have " +
                std::to_string(sequences.tokens()));
  return draw_dropout_mask(graph, p, sequences.sequences(), rows * columns,
                           [&](int b) { return sequences.length(b) * columns; });
}

}  // namespace heed
