#include "heed/ops/embedding.h"

#include "heed/ops/scatter_rows_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Block r computes row r of y. `positions` may be null.
template <class T>
__global__ void embedding_kernel(const T* weight, const T* position_table, const std::int32_t* ids,
                                 const std::int32_t* positions, T scale, DropoutMask<T> mask, std::int64_t columns,
                                 T* y) {
  const T* const word = weight + ids[blockIdx.x] * columns;
  const T* const place = positions ? position_table + positions[blockIdx.x] * columns : nullptr;
  const std::int64_t begin = blockIdx.x * columns;
  for_each_of_row(columns, [&](std::int64_t i) {
    const T value = scale * word[i - begin];
    y[i] = drop(place ? value + place[i - begin] : value, mask, i);
  });
}

/// Returns the numbers of a list that has one for each token.
std::span<const std::int32_t> list(const std::int32_t* numbers, EmbeddingRows rows) {
  return {numbers, static_cast<std::size_t>(rows.count)};
}

}  // namespace

template <class T>
void embedding_forward(CudaContext& device, EmbeddingRows rows, Tensor<T> weight, Tensor<T> position_table, T scale,
                       DropoutMask<T> mask, Tensor<T> y) {
  const ArenaScope scope(device.arena);
  launch(device, shape_for_rows<T>(rows.count, y.columns()), embedding_kernel<T>, weight.data(), position_table.data(),
         upload(device, list(rows.ids, rows)), rows.positions ? upload(device, list(rows.positions, rows)) : nullptr,
         scale, mask, y.columns(), y.data());
}

template <class T>
void embedding_backward(CudaContext& device, EmbeddingRows rows, T scale, DropoutMask<T> mask, Tensor<T> dy,
                        Tensor<T> dweight, Tensor<T> dposition_table) {
  if (dweight) scatter_rows(device, dy.data(), mask, list(rows.ids, rows), scale, dweight);
  if (dposition_table) scatter_rows(device, dy.data(), mask, list(rows.positions, rows), T(1), dposition_table);
}

#define HEED_INSTANTIATE(T)                                                                                         \
  template void embedding_forward(CudaContext&, EmbeddingRows, Tensor<T>, Tensor<T>, T, DropoutMask<T>, Tensor<T>); \
  template void embedding_backward(CudaContext&, EmbeddingRows, T, DropoutMask<T>, Tensor<T>, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
