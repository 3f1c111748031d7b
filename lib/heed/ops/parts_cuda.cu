#include "heed/ops/parts.h"

#include <algorithm>
#include <numeric>
#include <vector>

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

/// Adds the rows of dy that belong to the same row of dx, in their order: element e of `places` is the number of a row
/// of dy, and those of a row of dx are the elements begins[k] ... begins[k + 1] - 1. targets[k] is this row.
template <class T>
__global__ void scatter_rows_kernel(const T* dy, const std::int32_t* targets, const std::int32_t* begins,
                                    const std::int32_t* places, std::int64_t count, std::int64_t columns, T* dx) {
  for_each_element(count * columns, [&](std::int64_t i) {
    const std::int64_t k = i / columns, column = i % columns;
    T& target = dx[targets[k] * columns + column];
    T sum = target;
    for (std::int32_t e = begins[k]; e < begins[k + 1]; ++e) sum += dy[places[e] * columns + column];
    target = sum;
  });
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
  // A row that is gathered several times gets its gradients in the order of `rows`, from one thread: no two threads
  // write the same element.
  std::vector<std::int32_t> places(rows.size()), targets, begins;
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](std::int32_t a, std::int32_t b) {
    return rows[static_cast<std::size_t>(a)] < rows[static_cast<std::size_t>(b)];
  });
  for (std::size_t e = 0; e < places.size(); ++e) {
    const std::int32_t target = rows[static_cast<std::size_t>(places[e])];
    if (!targets.empty() && targets.back() == target) continue;
    targets.push_back(target);
    begins.push_back(static_cast<std::int32_t>(e));
  }
  begins.push_back(static_cast<std::int32_t>(places.size()));
  const ArenaScope scope(device.arena);
  launch(device, shape_for_elements(std::ssize(targets) * dx.columns()), scatter_rows_kernel<T>, dy.data(),
         upload<std::int32_t>(device, targets), upload<std::int32_t>(device, begins),
         upload<std::int32_t>(device, places), std::ssize(targets), dx.columns(), dx.data());
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
