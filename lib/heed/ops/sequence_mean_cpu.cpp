#include "heed/ops/sequence_mean.h"

namespace heed {

template <class T>
void sequence_mean_forward(CpuContext&, Tensor<T> x, PackedOffsets sequences, Tensor<T> y) {
  const std::int64_t columns = x.columns();
  for (int b = 0; b < sequences.sequences(); ++b) {
    T* const to = y.row(b);
    for (std::int64_t c = 0; c < columns; ++c) to[c] = 0;
    for (int i = 0; i < sequences.length(b); ++i) {
      const T* const from = x.row(sequences.begin(b) + i);
      for (std::int64_t c = 0; c < columns; ++c) to[c] += from[c];
    }
    const T share = T(1) / static_cast<T>(sequences.length(b));
    for (std::int64_t c = 0; c < columns; ++c) to[c] *= share;
  }
}

template <class T>
void sequence_mean_backward(CpuContext&, Tensor<T> dy, PackedOffsets sequences, Tensor<T> dx) {
  const std::int64_t columns = dy.columns();
  for (int b = 0; b < sequences.sequences(); ++b) {
    const T share = T(1) / static_cast<T>(sequences.length(b));
    for (int i = 0; i < sequences.length(b); ++i) {
      T* const to = dx.row(sequences.begin(b) + i);
      for (std::int64_t c = 0; c < columns; ++c) to[c] += share * dy.row(b)[c];
    }
  }
}

#define HEED_INSTANTIATE(T)                                                              \
  template void sequence_mean_forward(CpuContext&, Tensor<T>, PackedOffsets, Tensor<T>); \
  template void sequence_mean_backward(CpuContext&, Tensor<T>, PackedOffsets, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
