#include "heed/nn/patch_embedding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "heed/base/error.h"
#include "heed/ops/linear.h"
#include "heed/ops/patch_tokens.h"

namespace heed {
namespace {

/// Returns the number for each value of a sample of each channel, [C, 256], in memory of the arena.
template <class T>
Tensor<T> sample_values(Arena& arena, const PixelFormat& format) {
  const Tensor<T> out = arena.tensor<T>({format.channels, 256});
  for (std::size_t c = 0; c < static_cast<std::size_t>(format.channels); ++c)
    for (int v = 0; v < 256; ++v)
      out.row(static_cast<std::int64_t>(c))[v] = static_cast<T>((v / 255.0 - format.mean[c]) / format.deviation[c]);
  return out;
}

/// The four neighbours of a place between the elements of a row, and their weights in a cubic interpolation.
struct CubicTaps {
  std::array<int, 4> at;
  std::array<double, 4> weight;
};

CubicTaps cubic_taps(int index, int from, int to) {
  constexpr double a = -0.75;
  const double place = (index + 0.5) * from / to - 0.5, floor = std::floor(place), t = place - floor;
  const auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  CubicTaps out{{}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
  for (int k = 0; k < 4; ++k)
    out.at[static_cast<std::size_t>(k)] = std::clamp(static_cast<int>(floor) - 1 + k, 0, from - 1);
  return out;
}

}  // namespace

int image_size_of(std::int64_t ids, int channels) {
  const std::int64_t pixels = (ids - 1) / channels;
  const int size = static_cast<int>(std::lround(std::sqrt(static_cast<double>(std::max<std::int64_t>(pixels, 0)))));
  if (size < 1 || ids - 1 != std::int64_t{size} * size * channels)
    throw Error("internal: " + std::to_string(ids - 1) + " samples are no square image with " +
                std::to_string(channels) + " channels");
  return size;
}

template <class T>
Variable<T> patch_rows(Graph<T>& graph, std::span<const std::int32_t> ids, PackedOffsets images, int patch,
                       const PixelFormat& format) {
  const int size = image_size_of(images.length(0), format.channels), grid = size / patch, channels = format.channels;
  if (size % patch != 0)
    throw Error("images of " + std::to_string(size) + " x " + std::to_string(size) +
                " pixels cannot be cut into patches of " + std::to_string(patch) + " x " + std::to_string(patch));
  const Tensor<T> values = sample_values<T>(graph.host_arena(), format);
  const std::int64_t patches = std::int64_t{grid} * grid, columns = std::int64_t{channels} * patch * patch;
  const Tensor<T> out = graph.host_arena().template tensor<T>({images.sequences() * patches, columns});
  for (int b = 0; b < images.sequences(); ++b) {
    if (images.length(b) != images.length(0)) throw Error("internal: the images of a batch have different sizes");
    const std::int32_t* id = ids.data() + images.begin(b);
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) {
        T* const to = out.row(b * patches + (y / patch) * grid + x / patch) + (y % patch) * patch + x % patch;
        for (int c = 0; c < channels; ++c) to[c * patch * patch] = values.row(c)[*id++ - format.first_id];
      }
  }
  return graph.input(graph.device().upload(out));
}

PackedOffsets image_offsets(Arena& arena, std::int64_t tokens, int images) {
  const Tensor<std::int32_t> out = arena.tensor<std::int32_t>({images + 1});
  for (std::int32_t b = 0; b <= images; ++b) out[b] = b * static_cast<std::int32_t>(tokens);
  return {out.span()};
}

template <class T>
Tensor<T> resize_grid(Arena& arena, Tensor<T> grid, int from, int to) {
  const Tensor<T> out = arena.tensor<T>({std::int64_t{to} * to, grid.columns()});
  for (int y = 0; y < to; ++y)
    for (int x = 0; x < to; ++x) {
      const CubicTaps rows = cubic_taps(y, from, to), columns = cubic_taps(x, from, to);
      T* const row = out.row(std::int64_t{y} * to + x);
      std::fill_n(row, grid.columns(), T(0));
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
          const T weight = static_cast<T>(rows.weight[i] * columns.weight[j]);
          const T* const source = grid.row(std::int64_t{rows.at[i]} * from + columns.at[j]);
          for (std::int64_t c = 0; c < grid.columns(); ++c) row[c] += weight * source[c];
        }
    }
  return out;
}

PatchEmbedding::PatchEmbedding(ParameterLayout& layout, const std::string& name, PixelFormat format, int size,
                               int patch, std::int64_t width, bool class_token)
    : format_(std::move(format)), size_(size), patch_(patch), width_(width) {
  const std::int64_t columns = std::int64_t{format_.channels} * patch * patch;
  weight_ = layout.add(name + "/patches/weight", {width, columns}, Initialiser::xavier());
  bias_ = layout.add(name + "/patches/bias", {width}, Initialiser::zeros());
  // The deviation is that of the authors' program.
  const Initialiser normal = Initialiser::normal(0.02);
  if (class_token) class_token_ = layout.add(name + "/class_token", {1, width}, normal);
  positions_ = layout.add(name + "/positions/weight", {tokens(size), width}, normal);
}

template <class T>
PackedOffsets PatchEmbedding::token_offsets(Graph<T>& graph, PackedOffsets images) const {
  return image_offsets(graph.host_arena(), tokens(image_size_of(images.length(0), format_.channels)),
                       images.sequences());
}

template <class T>
Variable<T> PatchEmbedding::operator()(Graph<T>& graph, std::span<const std::int32_t> ids, PackedOffsets images) const {
  const int size = image_size_of(images.length(0), format_.channels);
  const Variable<T> rows = patch_rows(graph, ids, images, patch_, format_);
  const Variable<T> patches = linear(graph, rows, graph.parameter(weight_), graph.parameter(bias_));
  Variable<T> positions = graph.parameter(positions_);
  const Variable<T> token = class_token_ ? graph.parameter(class_token_) : Variable<T>();
  if (size != size_) {
    if (graph.recording())
      throw Error("internal: an image of " + std::to_string(size) + " pixels in a training with " +
                  std::to_string(size_));
    const std::int64_t first = class_token_ ? 1 : 0;
    const Tensor<T> learned = graph.device().download(positions.value);
    const Tensor<T> all = graph.host_arena().template tensor<T>({tokens(size), width_});
    if (first > 0) std::copy_n(learned.data(), width_, all.data());
    const Tensor<T> grid = resize_grid<T>(graph.host_arena(), learned.row_block(first, tokens(size_) - first),
                                          size_ / patch_, size / patch_);
    std::copy_n(grid.data(), grid.size(), all.row(first));
    positions = graph.input(graph.device().upload(all));
  }
  return patch_tokens(graph, patches, token, positions);
}

Product PatchEmbedding::product(Product place) const {
  place.weight = weight_;
  place.bias = bias_;
  place.outputs = width_;
  place.inputs = std::int64_t{format_.channels} * patch_ * patch_;
  return place;
}

#define HEED_INSTANTIATE(T)                                                                                          \
  template Variable<T> patch_rows(Graph<T>&, std::span<const std::int32_t>, PackedOffsets, int, const PixelFormat&); \
  template Tensor<T> resize_grid(Arena&, Tensor<T>, int, int);                                                       \
  template PackedOffsets PatchEmbedding::token_offsets(Graph<T>&, PackedOffsets) const;                              \
  template Variable<T> PatchEmbedding::operator()(Graph<T>&, std::span<const std::int32_t>, PackedOffsets) const;
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
