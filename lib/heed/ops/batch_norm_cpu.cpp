#include "heed/ops/batch_norm.h"

#include <algorithm>
#include <cmath>

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/batch_norm_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes the mean and the biased variance of each of the n columns of x.
template <class T>
void measure_columns(const T* x, T* HWY_RESTRICT mean, T* HWY_RESTRICT variance, std::int64_t rows, std::int64_t n) {
  std::fill_n(mean, n, T(0));
  std::fill_n(variance, n, T(0));
  const T share = 1 / static_cast<T>(rows);
  const auto scale_down = [&](T* HWY_RESTRICT sums) HWY_ATTR {
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                              HWY_ATTR { store(hn::Mul(load(d, sums + i), hn::Set(d, share)), d, sums + i); });
  };
  for (std::int64_t r = 0; r < rows; ++r)
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                              HWY_ATTR { store(hn::Add(load(d, mean + i), load(d, x + r * n + i)), d, mean + i); });
  scale_down(mean);
  for (std::int64_t r = 0; r < rows; ++r)
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      const auto centred = hn::Sub(load(d, x + r * n + i), load(d, mean + i));
      store(hn::MulAdd(centred, centred, load(d, variance + i)), d, variance + i);
    });
  scale_down(variance);
}

/// Computes y = (x - mean) * inverse * scale + bias for each column. y may be the same array as x.
template <class T>
void normalise_columns(const T* x, const T* HWY_RESTRICT mean, const T* HWY_RESTRICT inverse,
                       const T* HWY_RESTRICT scale, const T* HWY_RESTRICT bias, T* y, std::int64_t rows,
                       std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r)
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      const auto normal = hn::Mul(hn::Sub(load(d, x + r * n + i), load(d, mean + i)), load(d, inverse + i));
      store(hn::MulAdd(normal, load(d, scale + i), load(d, bias + i)), d, y + r * n + i);
    });
}

/// Adds dy and dy z, where z is the normalised x, over the rows to sum_g and sum_gz, [n] each.
template <class T>
void add_column_gradients(const T* HWY_RESTRICT x, const T* HWY_RESTRICT mean, const T* HWY_RESTRICT inverse,
                          const T* HWY_RESTRICT dy, T* HWY_RESTRICT sum_g, T* HWY_RESTRICT sum_gz, std::int64_t rows,
                          std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r)
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      const auto z = hn::Mul(hn::Sub(load(d, x + r * n + i), load(d, mean + i)), load(d, inverse + i));
      const auto g = load(d, dy + r * n + i);
      store(hn::Add(load(d, sum_g + i), g), d, sum_g + i);
      store(hn::MulAdd(g, z, load(d, sum_gz + i)), d, sum_gz + i);
    });
}

/// Adds the gradient of x to dx, from the sums over the rows that add_column_gradients() has computed.
template <class T>
void add_input_gradient(const T* HWY_RESTRICT x, const T* HWY_RESTRICT mean, const T* HWY_RESTRICT inverse,
                        const T* HWY_RESTRICT scale, const T* HWY_RESTRICT dy, const T* HWY_RESTRICT sum_g,
                        const T* HWY_RESTRICT sum_gz, T* HWY_RESTRICT dx, std::int64_t rows, std::int64_t n) {
  const T share = 1 / static_cast<T>(rows);
  for (std::int64_t r = 0; r < rows; ++r)
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      const auto z = hn::Mul(hn::Sub(load(d, x + r * n + i), load(d, mean + i)), load(d, inverse + i));
      const auto means = hn::Mul(hn::MulAdd(z, load(d, sum_gz + i), load(d, sum_g + i)), hn::Set(d, share));
      const auto factor = hn::Mul(load(d, scale + i), load(d, inverse + i));
      store(hn::MulAdd(factor, hn::Sub(load(d, dy + r * n + i), means), load(d, dx + r * n + i)), d, dx + r * n + i);
    });
}

/// Adds n elements of x to y.
template <class T>
void add_elements(const T* HWY_RESTRICT x, T* HWY_RESTRICT y, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                            HWY_ATTR { store(hn::Add(load(d, y + i), load(d, x + i)), d, y + i); });
}

HEED_INSTANTIATE_SIMD(measure_columns, (const float* x, float* m, float* v, std::int64_t r, std::int64_t n),
                      (const double* x, double* m, double* v, std::int64_t r, std::int64_t n), (x, m, v, r, n))
HEED_INSTANTIATE_SIMD(normalise_columns,
                      (const float* x, const float* m, const float* i, const float* s, const float* b, float* y,
                       std::int64_t r, std::int64_t n),
                      (const double* x, const double* m, const double* i, const double* s, const double* b, double* y,
                       std::int64_t r, std::int64_t n),
                      (x, m, i, s, b, y, r, n))
HEED_INSTANTIATE_SIMD(add_column_gradients,
                      (const float* x, const float* m, const float* i, const float* g, float* a, float* b,
                       std::int64_t r, std::int64_t n),
                      (const double* x, const double* m, const double* i, const double* g, double* a, double* b,
                       std::int64_t r, std::int64_t n),
                      (x, m, i, g, a, b, r, n))
HEED_INSTANTIATE_SIMD(add_input_gradient,
                      (const float* x, const float* m, const float* i, const float* s, const float* g, const float* a,
                       const float* b, float* dx, std::int64_t r, std::int64_t n),
                      (const double* x, const double* m, const double* i, const double* s, const double* g,
                       const double* a, const double* b, double* dx, std::int64_t r, std::int64_t n),
                      (x, m, i, s, g, a, b, dx, r, n))
HEED_INSTANTIATE_SIMD(add_elements, (const float* x, float* y, std::int64_t n),
                      (const double* x, double* y, std::int64_t n), (x, y, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(measure_columns)
HEED_EXPORT_SIMD(normalise_columns)
HEED_EXPORT_SIMD(add_column_gradients)
HEED_EXPORT_SIMD(add_input_gradient)
HEED_EXPORT_SIMD(add_elements)

template <class T>
void column_statistics(CpuContext&, Tensor<T> x, Tensor<T> mean, Tensor<T> variance) {
  simd::measure_columns(x.data(), mean.data(), variance.data(), x.rows(), x.columns());
}

template <class T>
void batch_norm_forward(CpuContext&, Tensor<T> x, Tensor<T> mean, Tensor<T> inverse, Tensor<T> scale, Tensor<T> bias,
                        Tensor<T> y) {
  simd::normalise_columns(x.data(), mean.data(), inverse.data(), scale.data(), bias.data(), y.data(), x.rows(),
                          x.columns());
}

template <class T>
void batch_norm_backward(CpuContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> inverse, Tensor<T> scale,
                         Tensor<T> dy, Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = x.rows(), n = x.columns();
  const Tensor<T> sum_g = device.arena.zeros<T>({n}), sum_gz = device.arena.zeros<T>({n});
  simd::add_column_gradients(x.data(), mean.data(), inverse.data(), dy.data(), sum_g.data(), sum_gz.data(), rows, n);
  if (dx)
    simd::add_input_gradient(x.data(), mean.data(), inverse.data(), scale.data(), dy.data(), sum_g.data(),
                             sum_gz.data(), dx.data(), rows, n);
  if (dscale) simd::add_elements(sum_gz.data(), dscale.data(), n);
  if (dbias) simd::add_elements(sum_g.data(), dbias.data(), n);
}

template <class T>
void add_statistic(CpuContext&, Tensor<T> values, T factor, std::int64_t rows, Tensor<T> sum) {
  const T count = static_cast<T>(rows);
  for (std::int64_t i = 0; i < values.size(); ++i) sum[i] += count * factor * values[i];
  sum[values.size()] += count;
}

template <class T>
Tensor<T> inverse_deviation(CpuContext& device, Tensor<T> variance, double epsilon) {
  const Tensor<T> inverse = device.arena.template tensor<T>(variance.shape());
  for (std::int64_t i = 0; i < variance.size(); ++i) inverse[i] = 1 / std::sqrt(variance[i] + static_cast<T>(epsilon));
  return inverse;
}

#define HEED_INSTANTIATE(T)                                                                                        \
  template void column_statistics(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>);                                   \
  template void batch_norm_forward(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>); \
  template void batch_norm_backward(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, \
                                    Tensor<T>, Tensor<T>);                                                         \
  template void add_statistic(CpuContext&, Tensor<T>, T, std::int64_t, Tensor<T>);                                 \
  template Tensor<T> inverse_deviation(CpuContext&, Tensor<T>, double);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
#endif  // HWY_ONCE
