#include "heed/ops/parts.h"

#include "heed/ops/scatter_rows_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

template <class T>
__global__ void copy_block_kernel(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                                  std::int64_t rows, std::int64_t columns, bool add) {
  for_each_element(rows * columns, [&](std::int64_t i) {
    const std::int64_t row = i / columns, column = i % columns;
    const T value = from[row * from_stride + column];
    T& target = to[row * to_stride + column];
    target = add ? target + value : value;
  });
}

template <class T>
__global__ void gather_rows_kernel(const T* x, const std::int32_t* rows, std::int64_t count, std::int64_t columns,
                                   T* y) {
  for_each_element(count * columns, [&](std::int64_t i) { y[i] = x[rows[i / columns] * columns + i % columns]; });
}

}  // namespace

template <class T>
void copy_block(CudaContext& device, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                std::int64_t rows, std::int64_t columns) {
  launch(device, shape_for_elements(rows * columns), copy_block_kernel<T>, from, from_stride, to, to_stride, rows,
         columns, false);
}

template <class T>
void add_block(CudaContext& device, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t columns) {
  launch(device, shape_for_elements(rows * columns), copy_block_kernel<T>, from, from_stride, to, to_stride, rows,
         columns, true);
}

template <class T>
void gather_rows_forward(CudaContext& device, Tensor<T> x, std::span<const std::int32_t> rows, Tensor<T> y) {
  const ArenaScope scope(device.arena);
  launch(device, shape_for_elements(y.size()), gather_rows_kernel<T>, x.data(), upload(device, rows), std::ssize(rows),
         x.columns(), y.data());
}

template <class T>
void gather_rows_backward(CudaContext& device, Tensor<T> dy, std::span<const std::int32_t> rows, Tensor<T> dx) {
  scatter_rows<T>(device, dy.data(), {}, rows, T(1), dx);
}

#define HEED_INSTANTIATE(T)                                                                                     \
  template void copy_block(CudaContext&, const T*, std::int64_t, T*, std::int64_t, std::int64_t, std::int64_t); \
  template void add_block(CudaContext&, const T*, std::int64_t, T*, std::int64_t, std::int64_t, std::int64_t);  \
  template void gather_rows_forward(CudaContext&, Tensor<T>, std::span<const std::int32_t>, Tensor<T>);         \
  template void gather_rows_backward(CudaContext&, Tensor<T>, std::span<const std::int32_t>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
