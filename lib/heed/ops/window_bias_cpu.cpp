#include <algorithm>
#include <cstring>

#include "heed/ops/window_bias.h"

// The kernels read and write the table in reverse order and with one row for each head. In the reversed table, the
// biases of a query for the keys of one row of the window lie side by side, from left to right: from key to key, the
// column difference x_i - x_j falls by 1.

namespace heed {
namespace {

/// The number of elements that are copied at a time, as many as a row of the usual windows has. Up to kCopied - 1
/// elements after the last key of a query are overwritten. These belong to the next query, whose biases are copied
/// later, or to the unused columns at the end.
constexpr std::int64_t kCopied = 8;
static_assert(kCopied <= kPositionBiasSlack);

/// Calls body(at, entry) for each query of the windows of one shape and for each row of keys. `at` is the column of the
/// bias for the first key of the row, and `entry` is the number that the bias has in the reversed table.
template <class Body>
void for_each_row_of_keys(const WindowShape& shape, const WindowMatrix& matrix, std::int64_t window, Body body) {
  std::int64_t query = matrix.column;
  for (std::int64_t y = 0; y < shape.rows; ++y)
    for (std::int64_t x = 0; x < shape.columns; ++x, query += matrix.stride)
      for (std::int64_t row = 0; row < shape.rows; ++row)
        body(query + row * shape.columns, (row - y + window - 1) * (2 * window - 1) + window - 1 - x);
}

}  // namespace

template <class T>
void window_bias_forward(CpuContext& device, Tensor<T> table, std::int64_t window, std::span<const WindowShape> shapes,
                         const WindowMatrix* matrices, Tensor<T> bias) {
  const ArenaScope scope(device.arena);
  const std::int64_t entries = table.rows();
  const Tensor<T> reversed = device.arena.zeros<T>({entries + kCopied});
  for (std::int64_t h = 0; h < bias.rows(); ++h) {
    for (std::int64_t c = 0; c < entries; ++c) reversed[entries - 1 - c] = table.row(c)[h];
    const T* const from = reversed.data();
    T* const to = bias.row(h);
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const WindowShape& shape = shapes[k];
      for_each_row_of_keys(shape, matrices[k], window, [&](std::int64_t at, std::int64_t entry) {
        for (std::int64_t x = 0; x < shape.columns; x += kCopied)
          std::memcpy(to + at + x, from + entry + x, kCopied * sizeof(T));
      });
      // Attention reads whole vectors, and thus elements after the last key.
      for (std::int64_t i = 0; i < shape.tokens(); ++i)
        std::fill(to + matrices[k].column + i * matrices[k].stride + shape.tokens(),
                  to + matrices[k].column + (i + 1) * matrices[k].stride, T(0));
    }
    std::fill_n(to + bias.columns() - kPositionBiasSlack, kPositionBiasSlack, T(0));
  }
}

template <class T>
void window_bias_backward(CpuContext& device, Tensor<T> dbias, std::int64_t window, std::span<const WindowShape> shapes,
                          const WindowMatrix* matrices, Tensor<T> dtable) {
  const ArenaScope scope(device.arena);
  const std::int64_t entries = dtable.rows();
  const Tensor<T> reversed = device.arena.tensor<T>({entries});
  for (std::int64_t h = 0; h < dbias.rows(); ++h) {
    std::fill_n(reversed.data(), entries, T(0));
    const T* const from = dbias.row(h);
    T* const to = reversed.data();
    for (std::size_t k = 0; k < shapes.size(); ++k)
      for_each_row_of_keys(shapes[k], matrices[k], window, [&](std::int64_t at, std::int64_t entry) {
        for (std::int64_t x = 0; x < shapes[k].columns; ++x) to[entry + x] += from[at + x];
      });
    for (std::int64_t c = 0; c < entries; ++c) dtable.row(c)[h] += to[entries - 1 - c];
  }
}

#define HEED_INSTANTIATE(T)                                                                              \
  template void window_bias_forward(CpuContext&, Tensor<T>, std::int64_t, std::span<const WindowShape>,  \
                                    const WindowMatrix*, Tensor<T>);                                     \
  template void window_bias_backward(CpuContext&, Tensor<T>, std::int64_t, std::span<const WindowShape>, \
                                     const WindowMatrix*, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
