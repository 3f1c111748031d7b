// Where the tokens of an attention layer lie in an image. A vision Transformer attends over a whole image: its tokens
// are a class token, perhaps, and the patches in reading order. A layer that attends within windows has a sequence for
// each window, and its tokens are in the order of the windows. A grid of 2 x 4 patches in two windows:
//
//   0 1 | 2 3     patches {0, 1, 4, 5, 2, 3, 6, 7}, offsets {0, 4, 8}
//   4 5 | 6 7
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "heed/nn/window_partition.h"

namespace heed {

/// The place of each token of an attention layer in an image, for the layer's attention weights of one image.
struct ImageGrid {
  /// The value in `patches` that stands for the class token, which is no patch.
  static constexpr std::int32_t kClassToken = -1;

  GridSize size;
  /// The patch r * columns + c of each token, in the order of the tokens in the layer. Each patch occurs once.
  std::vector<std::int32_t> patches;
  /// The boundaries of the sequences within which the tokens attend to each other: sequence w has the tokens offsets[w]
  /// ... offsets[w + 1] - 1. Several sequences are windows.
  std::vector<std::int32_t> offsets;

  std::int32_t tokens() const { return static_cast<std::int32_t>(patches.size()); }
  bool has_class_token() const { return tokens() > size.tokens(); }
  /// Returns whether the tokens attend within windows instead of the whole image.
  bool has_windows() const { return offsets.size() > 2; }
  /// Returns the place of a token in the order that does not depend on windows: the class token, if there is one, and
  /// then the patches in reading order.
  std::int32_t place(std::int32_t token) const {
    return patches[static_cast<std::size_t>(token)] + (has_class_token() ? 1 : 0);
  }
  /// Returns the window of each patch, [patches].
  std::vector<std::int32_t> windows() const {
    std::vector<std::int32_t> out(static_cast<std::size_t>(size.tokens()));
    for (std::size_t w = 0; w + 1 < offsets.size(); ++w)
      for (std::int32_t t = offsets[w]; t < offsets[w + 1]; ++t)
        if (const std::int32_t patch = patches[static_cast<std::size_t>(t)]; patch != kClassToken)
          out[static_cast<std::size_t>(patch)] = static_cast<std::int32_t>(w);
    return out;
  }
};

/// Returns the grid of a layer that attends over a whole image, with a class token before the patches or without.
inline ImageGrid whole_grid(GridSize size, bool class_token) {
  ImageGrid grid{.size = size, .patches = {}, .offsets = {}};
  grid.patches.resize(static_cast<std::size_t>(size.tokens()) + (class_token ? 1 : 0));
  std::iota(grid.patches.begin(), grid.patches.end(), class_token ? ImageGrid::kClassToken : 0);
  grid.offsets = {0, grid.tokens()};
  return grid;
}

/// Returns the grid of a layer that attends within the windows of `partition`.
inline ImageGrid windows_grid(GridSize size, const WindowPartition& partition) {
  ImageGrid grid{.size = size, .patches = partition.order, .offsets = {0}};
  for (const std::int32_t shape : partition.shape_of)
    grid.offsets.push_back(grid.offsets.back() +
                           static_cast<std::int32_t>(partition.shapes[static_cast<std::size_t>(shape)].tokens()));
  return grid;
}

}  // namespace heed
