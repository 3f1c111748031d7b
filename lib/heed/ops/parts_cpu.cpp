#include <algorithm>

#include "heed/ops/parts.h"

namespace heed {

template <class T>
void copy_block(CpuContext&, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * from_stride, columns, to + r * to_stride);
}

template <class T>
void add_block(CpuContext&, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
               std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* const source = from + r * from_stride;
    T* const target = to + r * to_stride;
    for (std::int64_t c = 0; c < columns; ++c) target[c] += source[c];
  }
}

template <class T>
void gather_rows_forward(CpuContext&, Tensor<T> x, std::span<const std::int32_t> rows, Tensor<T> y) {
  T* to = y.data();
  for (const std::int32_t row : rows) to = std::copy_n(x.row(row), x.columns(), to);
}

template <class T>
void gather_rows_backward(CpuContext& device, Tensor<T> dy, std::span<const std::int32_t> rows, Tensor<T> dx) {
  const std::int64_t columns = dx.columns();
  const T* from = dy.data();
  for (const std::int32_t row : rows) {
    add_block(device, from, columns, dx.row(row), columns, 1, columns);
    from += columns;
  }
}

#define HEED_INSTANTIATE(T)                                                                                    \
  template void copy_block(CpuContext&, const T*, std::int64_t, T*, std::int64_t, std::int64_t, std::int64_t); \
  template void add_block(CpuContext&, const T*, std::int64_t, T*, std::int64_t, std::int64_t, std::int64_t);  \
  template void gather_rows_forward(CpuContext&, Tensor<T>, std::span<const std::int32_t>, Tensor<T>);         \
  template void gather_rows_backward(CpuContext&, Tensor<T>, std::span<const std::int32_t>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
