#pragma once

#include <cstdint>
#include <span>

namespace heed {

/// Where the sequences of a packed batch begin: sequence b is rows offsets[b] .. offsets[b + 1] of a [tokens, ...]
/// tensor; offsets[0] is 0, the last one the number of tokens. A view.
struct PackedOffsets {
  std::span<const std::int32_t> offsets;

  int sequences() const { return offsets.empty() ? 0 : static_cast<int>(offsets.size()) - 1; }
  int begin(int sequence) const { return offsets[static_cast<std::size_t>(sequence)]; }
  int length(int sequence) const { return begin(sequence + 1) - begin(sequence); }
  int tokens() const { return offsets.empty() ? 0 : offsets.back(); }
};

}  // namespace heed
