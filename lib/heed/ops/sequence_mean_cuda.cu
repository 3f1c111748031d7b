#include "heed/ops/sequence_mean.h"

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Each thread sums a column of a sequence; the rows come one after the other, as on a CPU.
template <class T>
__global__ void mean_kernel(const T* x, const std::int32_t* offsets, std::int64_t sequences, std::int64_t columns,
                            T* y) {
  for_each_element(sequences * columns, [&](std::int64_t i) {
    const std::int64_t b = i / columns, c = i % columns;
    T sum = 0;
    for (std::int64_t row = offsets[b]; row < offsets[b + 1]; ++row) sum += x[row * columns + c];
    y[i] = sum * (T(1) / static_cast<T>(offsets[b + 1] - offsets[b]));
  });
}

template <class T>
__global__ void mean_gradient_kernel(const T* dy, const std::int32_t* offsets, std::int64_t sequences,
                                     std::int64_t columns, T* dx) {
  for_each_element(sequences * columns, [&](std::int64_t i) {
    const std::int64_t b = i / columns, c = i % columns;
    const T share = dy[i] * (T(1) / static_cast<T>(offsets[b + 1] - offsets[b]));
    for (std::int64_t row = offsets[b]; row < offsets[b + 1]; ++row) dx[row * columns + c] += share;
  });
}

}  // namespace

template <class T>
void sequence_mean_forward(CudaContext& device, Tensor<T> x, PackedOffsets sequences, Tensor<T> y) {
  const ArenaScope scope(device.arena);
  launch(device, shape_for_elements(y.size()), mean_kernel<T>, x.data(), upload(device, sequences.offsets),
         sequences.sequences(), y.columns(), y.data());
}

template <class T>
void sequence_mean_backward(CudaContext& device, Tensor<T> dy, PackedOffsets sequences, Tensor<T> dx) {
  const ArenaScope scope(device.arena);
  launch(device, shape_for_elements(dy.size()), mean_gradient_kernel<T>, dy.data(), upload(device, sequences.offsets),
         sequences.sequences(), dy.columns(), dx.data());
}

#define HEED_INSTANTIATE(T)                                                               \
  template void sequence_mean_forward(CudaContext&, Tensor<T>, PackedOffsets, Tensor<T>); \
  template void sequence_mean_backward(CudaContext&, Tensor<T>, PackedOffsets, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
