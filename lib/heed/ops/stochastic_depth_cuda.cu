#include "heed/ops/sequences_cuda-inl.h"
#include "heed/ops/stochastic_depth.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

template <class T>
__global__ void scale_sequences_kernel(const T* x, const Bfloat16* rounded, const std::int32_t* offsets, int sequences,
                                       const T* factors, bool add, T* y, std::int64_t columns) {
  const T factor = factors[sequence_of_row(offsets, sequences, blockIdx.x)];
  for_each_of_row(columns, [&](std::int64_t i) {
    const T product = factor * (rounded ? static_cast<T>(from_bfloat16(rounded[i])) : x[i]);
    y[i] = add ? y[i] + product : product;
  });
}

}  // namespace

template <class T>
void scale_sequences(CudaContext& device, MaybeRounded<T> x, PackedOffsets sequences, std::span<const T> factors,
                     bool add, Tensor<T> y) {
  const ArenaScope scope(device.arena);
  launch(device, shape_for_rows<T>(sequences.tokens(), x.columns()), scale_sequences_kernel<T>, x.full.data(),
         x.rounded.data(), upload(device, sequences.offsets), sequences.sequences(), upload(device, factors), add,
         y.data(), x.columns());
}

template void scale_sequences(CudaContext&, MaybeRounded<float>, PackedOffsets, std::span<const float>, bool,
                              Tensor<float>);
template void scale_sequences(CudaContext&, MaybeRounded<double>, PackedOffsets, std::span<const double>, bool,
                              Tensor<double>);

}  // namespace heed
