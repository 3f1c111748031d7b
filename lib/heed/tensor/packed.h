#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace heed {

/// The boundaries of the sequences of a packed batch, whose tokens lie one after another without padding: sequence b is
/// rows offsets[b] ... offsets[b + 1] - 1 of a [tokens, ...] tensor. For example, sequences of 3 and 2 tokens have the
/// offsets {0, 3, 5}. PackedOffsets is a view: the caller owns the array of offsets.
struct PackedOffsets {
  std::span<const std::int32_t> offsets;

  int sequences() const { return offsets.empty() ? 0 : static_cast<int>(offsets.size()) - 1; }
  int begin(int sequence) const { return offsets[static_cast<std::size_t>(sequence)]; }
  int length(int sequence) const { return begin(sequence + 1) - begin(sequence); }
  int tokens() const { return offsets.empty() ? 0 : offsets.back(); }
  /// Returns the length of the longest sequence, in tokens; 0 without sequences.
  int longest() const {
    int most = 0;
    for (int b = 0; b < sequences(); ++b) most = std::max(most, length(b));
    return most;
  }
};

}  // namespace heed
