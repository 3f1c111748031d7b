#pragma once

#include <cstdint>
#include <span>

namespace heed {

/// The size of a window of a grid of tokens. The tokens of a window are one sequence of a packed batch: the first row
/// of the window from left to right, then the second row, and so on.
struct WindowShape {
  std::int32_t rows = 0, columns = 0;

  std::int64_t tokens() const { return std::int64_t{rows} * columns; }
  bool operator==(const WindowShape&) const = default;
};

/// The windows of a packed batch: sequence b is a window of the shape shapes[shape_of[b]]. PackedWindows is a view: the
/// caller owns both arrays.
struct PackedWindows {
  std::span<const WindowShape> shapes;
  std::span<const std::int32_t> shape_of;

  const WindowShape& shape(int sequence) const {
    return shapes[static_cast<std::size_t>(shape_of[static_cast<std::size_t>(sequence)])];
  }
};

}  // namespace heed
