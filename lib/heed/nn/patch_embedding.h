#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/nn/position_table.h"
#include "heed/nn/product.h"
#include "heed/tensor/packed.h"

namespace heed {

/// How the images of a packed batch are stored, and how their samples become numbers.
///
/// An image is a sequence of ids: its 8-bit samples row by row, the channels of a pixel side by side, each as
/// `first_id` plus the sample. One more id, which is not read, ends the sequence.
struct PixelFormat {
  int channels = 3;
  std::int32_t first_id = 0;
  /// For each channel, the mean and the standard deviation of the samples, divided by 255: a sample v becomes
  /// (v / 255 - mean) / deviation.
  std::vector<double> mean, deviation;
};

/// Returns the width of the square image of a sequence with `ids` ids, the last one included. Throws Error unless the
/// sequence is a square image.
int image_size_of(std::int64_t ids, int channels);

/// Returns the patches of the images as rows of numbers: for images of S x S pixels and patches of P x P pixels,
/// [B (S / P)^2, C P P]. The patches of an image are in reading order; the columns of a row are those of the weight of
/// PyTorch's Conv2d: channel, then row, then column. All images must have the same size, which P divides. Throws Error
/// otherwise. Memory comes from the arena of the graph.
template <class T>
Variable<T> patch_rows(Graph<T>& graph, std::span<const std::int32_t> ids, PackedOffsets images, int patch,
                       const PixelFormat& format);

/// Returns the offsets of `images` images that have `tokens` tokens each, in memory of the arena.
PackedOffsets image_offsets(Arena& arena, std::int64_t tokens, int images);

/// Returns a grid of vectors in another size, by bicubic interpolation (Keys 1981, a = -0.75), as PyTorch's
/// interpolate(mode="bicubic", align_corners=False). Shapes: grid [from^2, D] in reading order -> [to^2, D]. Memory
/// comes from the arena.
template <class T>
Tensor<T> resize_grid(Arena& arena, Tensor<T> grid, int from, int to);

/// The first layer of a vision Transformer (Dosovitskiy et al. 2021, section 3.1): a linear layer that embeds patches
/// of P x P pixels, a class token (if there is one), and learned positions. The parameters are <name>/patches/{weight
/// [D, C P P], bias [D]}, <name>/class_token [1, D] and <name>/positions/weight [L, D], where L is the number of
/// patches of an image, plus 1 for the class token.
class PatchEmbedding {
 public:
  /// `size` is the width of the images for which there are positions.
  PatchEmbedding(ParameterLayout& layout, const std::string& name, PixelFormat format, int size, int patch,
                 std::int64_t width, bool class_token);

  /// Returns the number of tokens of an image of size x size pixels.
  int tokens(int size) const { return (size / patch_) * (size / patch_) + (class_token_ ? 1 : 0); }
  int size() const { return size_; }
  const PixelFormat& format() const { return format_; }

  /// Returns the tokens of B images of one size, [B L, D]. Positions for images of another size than `size` are
  /// interpolated (resize_grid()), which only inference does. Throws Error if the images are not square, of one size
  /// and a multiple of P, or have another size in training.
  template <class T>
  Variable<T> operator()(Graph<T>& graph, std::span<const std::int32_t> ids, PackedOffsets images) const;
  /// Returns the offsets of the tokens of B images, in memory of the arena.
  template <class T>
  PackedOffsets token_offsets(Graph<T>& graph, PackedOffsets images) const;

  /// Returns the learned positions, one in each row, that of the class token first.
  template <class T>
  PositionTable position_table(Graph<T>& graph) const {
    const Tensor<T> vectors = graph.parameter(positions_).value;
    return {.stack = PositionTable::Stack::encoder,
            .term = PositionTable::Term::learned,
            .row_axis = "position",
            .column_axis = "component",
            .rows = vectors.rows(),
            .columns = width_,
            .values = table_values(graph.device().download(vectors), 0, 0, vectors.rows(), width_)};
  }
  /// Returns the matrix product of the patches, with the members of `place` that say where it is.
  Product product(Product place) const;

 private:
  PixelFormat format_;
  int size_, patch_;
  std::int64_t width_;
  ParameterId weight_, bias_, class_token_, positions_;
};

}  // namespace heed
