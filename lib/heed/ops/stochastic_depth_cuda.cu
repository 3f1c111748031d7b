#include "heed/ops/sequences_cuda-inl.h"
#include "heed/ops/stochastic_depth.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

template <class T>
__global__ void scale_sequences_kernel(const T* x, const std::int32_t* offsets, int sequences, const T* factors,
                                       bool add, T* y, std::int64_t columns) {
  const T factor = factors[sequence_of_row(offsets, sequences, blockIdx.x)];
  for_each_of_row(columns, [&](std::int64_t i) { y[i] = add ? y[i] + factor * x[i] : factor * x[i]; });
}

}  // namespace

template <class T>
void scale_sequences(CudaContext& device, Tensor<T> x, PackedOffsets sequences, std::span<const T> factors, bool add,
                     Tensor<T> y) {
  const ArenaScope scope(device.arena);
  launch(device, shape_for_rows<T>(sequences.tokens(), x.columns()), scale_sequences_kernel<T>, x.data(),
         upload(device, sequences.offsets), sequences.sequences(), upload(device, factors), add, y.data(), x.columns());
}

template void scale_sequences(CudaContext&, Tensor<float>, PackedOffsets, std::span<const float>, bool, Tensor<float>);
template void scale_sequences(CudaContext&, Tensor<double>, PackedOffsets, std::span<const double>, bool,
                              Tensor<double>);

}  // namespace heed
