#include "heed/ops/window_bias.h"

#include <vector>

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// A shape of windows, and where the bias holds its matrix: `columns` columns from `begin` on, `stride` for each query.
struct ShapeColumns {
  std::int32_t window_rows, window_columns;
  std::int64_t begin, columns, stride;
};

/// Computes the matrices of `count` shapes for all heads. `side` is 2M - 1, the number of row or column differences of
/// the largest window.
template <class T>
__global__ void window_bias_kernel(const T* table, std::int64_t side, const ShapeColumns* shapes, std::int64_t count,
                                   std::int64_t heads, std::int64_t columns, T* bias) {
  for_each_element(heads * columns, [&](std::int64_t i) {
    const std::int64_t head = i / columns, column = i % columns;
    T value = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const ShapeColumns shape = shapes[k];
      const std::int64_t at = column - shape.begin, width = shape.window_columns;
      if (at < 0 || at >= shape.columns) continue;
      const std::int64_t query = at / shape.stride, key = at % shape.stride;
      if (key >= shape.window_rows * width) continue;
      const std::int64_t rows = query / width - key / width, difference = query % width - key % width;
      value = table[((rows + side / 2) * side + difference + side / 2) * heads + head];
    }
    bias[i] = value;
  });
}

/// Computes the gradient of an element of the table, which has a block: the sum over all pairs of query and key that
/// read it, in windows of all shapes.
template <class T>
__global__ void window_bias_gradient_kernel(const T* dbias, std::int64_t side, const ShapeColumns* shapes,
                                            std::int64_t count, std::int64_t heads, std::int64_t columns, T* dtable) {
  const std::int64_t entry = blockIdx.x / heads;
  const T* const row = dbias + blockIdx.x % heads * columns;
  // The query is `down` rows below the key and `right` columns to the right of it.
  const std::int64_t down = entry / side - side / 2, right = entry % side - side / 2;
  T sum = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const ShapeColumns shape = shapes[k];
    const std::int64_t width = shape.window_columns;
    const std::int64_t rows_of_queries = shape.window_rows - (down < 0 ? -down : down);
    const std::int64_t columns_of_queries = width - (right < 0 ? -right : right);
    if (rows_of_queries <= 0 || columns_of_queries <= 0) continue;
    for (std::int64_t pair = threadIdx.x; pair < rows_of_queries * columns_of_queries; pair += blockDim.x) {
      const std::int64_t y = pair / columns_of_queries + (down > 0 ? down : 0);
      const std::int64_t x = pair % columns_of_queries + (right > 0 ? right : 0);
      sum += row[shape.begin + (y * width + x) * shape.stride + (y - down) * width + x - right];
    }
  }
  sum = block_sum(sum, shared_memory<T>());
  if (threadIdx.x == 0) dtable[blockIdx.x] += sum;
}

/// Returns the shapes and the places of their matrices, in the memory of the GPU.
const ShapeColumns* upload_shapes(CudaContext& device, std::span<const WindowShape> shapes,
                                  const WindowMatrix* matrices) {
  std::vector<ShapeColumns> out;
  for (const WindowShape& shape : shapes) {
    const WindowMatrix& matrix = matrices[out.size()];
    out.push_back({shape.rows, shape.columns, matrix.column, shape.tokens() * matrix.stride, matrix.stride});
  }
  return upload<ShapeColumns>(device, out);
}

}  // namespace

template <class T>
void window_bias_forward(CudaContext& device, Tensor<T> table, std::int64_t window, std::span<const WindowShape> shapes,
                         const WindowMatrix* matrices, Tensor<T> bias) {
  const ArenaScope scope(device.arena);
  launch(device, shape_for_elements(bias.size()), window_bias_kernel<T>, table.data(), 2 * window - 1,
         upload_shapes(device, shapes, matrices), std::ssize(shapes), bias.rows(), bias.columns(), bias.data());
}

template <class T>
void window_bias_backward(CudaContext& device, Tensor<T> dbias, std::int64_t window,
                          std::span<const WindowShape> shapes, const WindowMatrix* matrices, Tensor<T> dtable) {
  const ArenaScope scope(device.arena);
  // At most M^2 pairs of a shape read an element, so 32 threads are enough for it.
  launch(device, shape_for_rows<T>(dtable.size(), 32), window_bias_gradient_kernel<T>, dbias.data(), 2 * window - 1,
         upload_shapes(device, shapes, matrices), std::ssize(shapes), dbias.rows(), dbias.columns(), dtable.data());
}

#define HEED_INSTANTIATE(T)                                                                               \
  template void window_bias_forward(CudaContext&, Tensor<T>, std::int64_t, std::span<const WindowShape>,  \
                                    const WindowMatrix*, Tensor<T>);                                      \
  template void window_bias_backward(CudaContext&, Tensor<T>, std::int64_t, std::span<const WindowShape>, \
                                     const WindowMatrix*, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
