#include "heed/ops/stochastic_depth.h"

namespace heed {

template <class T>
void scale_sequences(CpuContext&, MaybeRounded<T> x, PackedOffsets sequences, std::span<const T> factors, bool add,
                     Tensor<T> y) {
  const std::int64_t columns = x.columns();
  for (int b = 0; b < sequences.sequences(); ++b) {
    const T factor = factors[static_cast<std::size_t>(b)];
    const T* const from = x.full.row(sequences.begin(b));
    T* const to = y.row(sequences.begin(b));
    const std::int64_t size = sequences.length(b) * columns;
    if (add)
      for (std::int64_t i = 0; i < size; ++i) to[i] += factor * from[i];
    else
      for (std::int64_t i = 0; i < size; ++i) to[i] = factor * from[i];
  }
}

template void scale_sequences(CpuContext&, MaybeRounded<float>, PackedOffsets, std::span<const float>, bool,
                              Tensor<float>);
template void scale_sequences(CpuContext&, MaybeRounded<double>, PackedOffsets, std::span<const double>, bool,
                              Tensor<double>);

}  // namespace heed
