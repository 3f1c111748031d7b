#include <algorithm>

#include "heed/ops/heads.h"

namespace heed {

template <class T>
void rearrange_heads(CpuContext&, const T* x, const Shape& rows, int heads, bool merge, T beta, T* to) {
  const std::int64_t length = rows[1], width = rows[2], d = width / heads;
  for (std::int64_t b = 0; b < rows[0]; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t t = 0; t < length; ++t) {
        const std::int64_t merged = (b * length + t) * width + h * d, split = ((b * heads + h) * length + t) * d;
        const T* from = x + (merge ? split : merged);
        T* out = to + (merge ? merged : split);
        for (std::int64_t c = 0; c < d; ++c) out[c] = from[c] + (beta == 0 ? T(0) : out[c]);
      }
}

template <class T>
void mean_over_heads_forward(CpuContext&, Tensor<T> x, int heads, Tensor<T> y) {
  const std::int64_t n = y.dim(1) * y.dim(2);
  for (std::int64_t b = 0; b < y.dim(0); ++b)
    for (std::int64_t i = 0; i < n; ++i) {
      T sum = 0;
      for (std::int64_t h = 0; h < heads; ++h) sum += x.data()[(b * heads + h) * n + i];
      y.data()[b * n + i] = sum / static_cast<T>(heads);
    }
}

template <class T>
void mean_over_heads_backward(CpuContext&, Tensor<T> dy, int heads, Tensor<T> dx) {
  const std::int64_t n = dy.dim(1) * dy.dim(2);
  for (std::int64_t b = 0; b < dy.dim(0); ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < n; ++i)
        dx.data()[(b * heads + h) * n + i] += dy.data()[b * n + i] / static_cast<T>(heads);
}

template <class T>
void append_row_forward(CpuContext&, Tensor<T> x, Tensor<T> row, Tensor<T> y) {
  const std::int64_t n = x.dim(1) * x.dim(2), width = x.dim(2);
  for (std::int64_t b = 0; b < x.dim(0); ++b) {
    T* const out = std::copy_n(x.data() + b * n, n, y.data() + b * (n + width));
    if (row)
      std::copy_n(row.data(), width, out);
    else
      std::fill_n(out, width, T(0));
  }
}

template <class T>
void append_row_backward(CpuContext&, Tensor<T> dy, Tensor<T> dx, Tensor<T> drow) {
  const std::int64_t width = dy.dim(2), n = dy.dim(1) * width - width;
  for (std::int64_t b = 0; b < dy.dim(0); ++b) {
    const T* from = dy.data() + b * (n + width);
    for (std::int64_t i = 0; dx && i < n; ++i) dx.data()[b * n + i] += from[i];
    for (std::int64_t c = 0; drow && c < width; ++c) drow.data()[c] += from[n + c];
  }
}

#define HEED_INSTANTIATE(T)                                                             \
  template void rearrange_heads(CpuContext&, const T*, const Shape&, int, bool, T, T*); \
  template void mean_over_heads_forward(CpuContext&, Tensor<T>, int, Tensor<T>);        \
  template void mean_over_heads_backward(CpuContext&, Tensor<T>, int, Tensor<T>);       \
  template void append_row_forward(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>);       \
  template void append_row_backward(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
