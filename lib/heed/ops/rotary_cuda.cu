#include "heed/ops/rotary.h"

#include "heed/ops/sequences_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Rotates the first `width` of the `stride` columns of x, in place, a row in each block. The position of a row is
/// lengths[row] - 1 where `lengths` is not null, and otherwise its place in its sequence. A row of `table` has `size`
/// cosines and `size` sines. `back` selects the negative angles.
template <class T>
__global__ void rotate_kernel(T* x, std::int64_t stride, std::int64_t width, const std::int32_t* offsets, int sequences,
                              const std::int32_t* lengths, const T* table, std::int64_t size, bool back) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t position = lengths ? lengths[row] - 1 : row - offsets[sequence_of_row(offsets, sequences, row)];
  const T *cosines = table + position * 2 * size, *sines = cosines + size;
  for (std::int64_t i = 2 * threadIdx.x; i < width; i += 2 * blockDim.x) {
    T* const pair = x + row * stride + i;
    const T even = pair[0], odd = pair[1], cosine = cosines[i % size], stored = sines[i % size + 1];
    const T sine = back ? -stored : stored;
    pair[0] = even * cosine - odd * sine;
    pair[1] = odd * cosine + even * sine;
  }
}

}  // namespace

template <class T>
void rotary_forward(CudaContext& device, Tensor<T> x, std::int64_t width, PackedOffsets packed, Tensor<T> table,
                    bool back) {
  const ArenaScope scope(device.arena);
  launch(device, shape_for_rows<T>(packed.tokens(), width / 2), rotate_kernel<T>, x.data(), x.columns(), width,
         upload(device, packed.offsets), packed.sequences(), nullptr, table.data(), table.columns() / 2, back);
}

template <class T>
void rotary_step(CudaContext& device, Tensor<T> x, std::int64_t width, std::span<const std::int32_t> lengths,
                 Tensor<T> table) {
  const ArenaScope scope(device.arena);
  launch(device, shape_for_rows<T>(std::ssize(lengths), width / 2), rotate_kernel<T>, x.data(), x.columns(), width,
         nullptr, 0, upload(device, lengths), table.data(), table.columns() / 2, false);
}

#define HEED_INSTANTIATE(T)                                                                            \
  template void rotary_forward(CudaContext&, Tensor<T>, std::int64_t, PackedOffsets, Tensor<T>, bool); \
  template void rotary_step(CudaContext&, Tensor<T>, std::int64_t, std::span<const std::int32_t>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
