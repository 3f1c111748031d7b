#include "heed/inspect/image_attention.h"

#include "heed/base/error.h"

namespace heed {
namespace {

std::size_t index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

/// Throws Error unless the layer has one sequence of keys for each sequence of the grid, with as many tokens.
void check_sequences(const LayerWeights& layer) {
  bool equal = layer.keys.offsets.size() == layer.grid.offsets.size();
  for (std::size_t i = 0; equal && i < layer.grid.offsets.size(); ++i)
    equal = layer.keys.offsets[i] == layer.grid.offsets[i];
  if (!equal) throw Error("internal: an attention layer has other sequences than its grid of patches");
}

/// Calls visit(query, keys, row) for each query of each sequence of a head: `keys` is the number of the sequence's
/// first key, and `row` has the weights of the sequence's keys.
template <class Visit>
void for_each_row(const LayerWeights& layer, int head, const Visit& visit) {
  const float* weights = layer.weights.data();
  for (int s = 0; s < layer.queries.sequences(); ++s) {
    const std::size_t rows = index(layer.queries.length(s)), columns = index(layer.keys.length(s));
    const float* row = weights + index(head) * rows * columns;
    for (std::size_t r = 0; r < rows; ++r, row += columns)
      visit(layer.queries.begin(s) + static_cast<std::int32_t>(r), layer.keys.begin(s), std::span(row, columns));
    weights += index(layer.heads) * rows * columns;
  }
}

/// Returns the weights of a head as a matrix of `rows` rows with a column for each place of the grid. The weights of
/// query q are in the row row_of(q).
template <class RowOf>
std::vector<float> matrix_of(const LayerWeights& layer, int head, std::int64_t rows, const RowOf& row_of) {
  const ImageGrid& grid = layer.grid;
  std::vector<float> out(index(rows) * index(grid.tokens()));
  for_each_row(layer, head, [&](std::int32_t query, std::int32_t keys, std::span<const float> row) {
    float* const to = out.data() + index(row_of(query)) * index(grid.tokens());
    for (std::size_t k = 0; k < row.size(); ++k) to[grid.place(keys + static_cast<std::int32_t>(k))] = row[k];
  });
  return out;
}

}  // namespace

std::vector<std::string> patch_labels(const ImageGrid& grid) {
  std::vector<std::string> out;
  if (grid.has_class_token()) out.emplace_back(kClassTokenLabel);
  for (int r = 0; r < grid.size.rows; ++r)
    for (int c = 0; c < grid.size.columns; ++c) out.push_back(std::to_string(c) + ',' + std::to_string(r));
  return out;
}

std::int32_t patch_at(const ImageGrid& grid, int x, int y, int size) {
  return y * grid.size.rows / size * grid.size.columns + x * grid.size.columns / size;
}

std::vector<float> query_weights(const LayerWeights& layer, int head, std::optional<std::int32_t> patch) {
  check_sequences(layer);
  const ImageGrid& grid = layer.grid;
  const bool all = !patch && !grid.has_class_token();
  const std::int32_t wanted = patch.value_or(ImageGrid::kClassToken);
  std::vector<double> sums(index(grid.tokens()));
  for_each_row(layer, head, [&](std::int32_t query, std::int32_t keys, std::span<const float> row) {
    if (!all && grid.patches[index(query)] != wanted) return;
    for (std::size_t k = 0; k < row.size(); ++k)
      sums[index(grid.place(keys + static_cast<std::int32_t>(k)))] += static_cast<double>(row[k]);
  });
  std::vector<float> out;
  for (const double sum : sums) out.push_back(static_cast<float>(all ? sum / grid.tokens() : sum));
  return out;
}

std::vector<float> self_attention_weights(const LayerWeights& layer, int head) {
  check_sequences(layer);
  return matrix_of(layer, head, layer.grid.tokens(), [&](std::int32_t query) { return layer.grid.place(query); });
}

std::vector<float> cross_attention_weights(const LayerWeights& layer, int head) {
  if (layer.queries.sequences() != 1 || layer.keys.tokens() != layer.grid.tokens())
    throw Error("internal: cross attention attends to other tokens than the patches of one image");
  return matrix_of(layer, head, layer.queries.tokens(), [](std::int32_t query) { return query; });
}

}  // namespace heed
