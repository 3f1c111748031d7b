// How the tokens of an image are ordered for attention within windows (Liu et al. 2021, "Swin Transformer",
// sections 3.1 and 3.2): index arithmetic only.
//
// The tokens of an image lie in a grid, and a layer attends within windows of M x M tokens. In heed, each window is a
// sequence of a packed batch: a gather brings the tokens into window order, and attention takes the offsets of the
// windows. Every second layer shifts the windows by s tokens. The paper rolls the image for this and masks the pairs of
// tokens that only the rolling has brought together. Instead, heed cuts the shifted windows at the borders of the
// image: a cut window has exactly the tokens that the mask lets attend to each other, and it is a sequence of its own.
// With M = 4 and s = 2, the 8 rows of a grid, and its columns alike, are cut into
//   s = 0   0 1 2 3 | 4 5 6 7
//   s = 2   0 1 | 2 3 4 5 | 6 7
// so that the grid of 8 x 8 tokens has windows of 2 x 2, 2 x 4, 4 x 2 and 4 x 4 tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/tensor/packed_windows.h"

namespace heed {

/// The size of a grid of tokens. Token number r * columns + c is in row r and column c.
struct GridSize {
  std::int32_t rows = 0, columns = 0;

  std::int64_t tokens() const { return std::int64_t{rows} * columns; }
};

/// The windows of one image, from left to right and from top to bottom.
struct WindowPartition {
  /// The window order of the tokens, [tokens]: place t is taken by the token number order[t] of the grid.
  /// gather_rows(x, order) brings the rows of a grid into window order.
  std::vector<std::int32_t> order;
  /// The inverse: token number g of the grid takes the place inverse[g]. gather_rows(x, inverse) brings rows in window
  /// order back into the order of the grid.
  std::vector<std::int32_t> inverse;
  /// The different shapes of windows, at most nine.
  std::vector<WindowShape> shapes;
  /// The shape of each window, [windows], as an index into `shapes`.
  std::vector<std::int32_t> shape_of;

  std::int64_t windows() const { return std::ssize(shape_of); }
};

/// Divides a grid into windows of `window` x `window` tokens, which are shifted by `shift` tokens down and to the
/// right. The pairs of tokens that share a window are those that attend to each other in torchvision's
/// shifted_window_attention(). As in torchvision, nothing is shifted along a side of the grid that is at most as long
/// as a window. Such a side has one window of its length; torchvision would pad a shorter side to a whole window, with
/// tokens that attend, too.
///
/// Throws Error where a longer side is no multiple of `window` (torchvision pads there as well), where the grid or the
/// window is empty, and unless 0 <= shift < window.
WindowPartition window_partition(GridSize grid, int window, int shift);

/// Returns the order of tokens for patch merging (Liu et al. 2021, section 3.1), [tokens]. For the token m of the
/// merged grid, in row r and column c, the places 4m to 4m + 3 are taken by the four tokens
///   (2r, 2c), (2r + 1, 2c), (2r, 2c + 1), (2r + 1, 2c + 1)   as (row, column),
/// so that the result of gather_rows(x, order) [tokens, C], read as [tokens / 4, 4C], is the concatenation in
/// torchvision's PatchMerging. Throws Error unless rows and columns are even.
std::vector<std::int32_t> patch_merging_order(GridSize grid);

/// Fills `rows` [images * tokens] with an order of tokens for all images of a batch: image b takes the places and the
/// rows from b * tokens on. `order` [tokens] is that of one image, such as WindowPartition::order, its inverse, or a
/// patch_merging_order(). Throws Error where `rows` has another size.
void repeat_order(std::span<const std::int32_t> order, int images, std::span<std::int32_t> rows);

/// Fills `offsets` [images * windows + 1] and `shape_of` [images * windows] with the windows of all images of a batch,
/// as PackedOffsets and PackedWindows want them. Throws Error where an array has another size.
void repeat_windows(const WindowPartition& partition, int images, std::span<std::int32_t> offsets,
                    std::span<std::int32_t> shape_of);

}  // namespace heed
