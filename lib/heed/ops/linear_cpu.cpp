#include <numbers>

#include "heed/ops/gemm/gemm.h"
#include "heed/ops/linear.h"

// Compiled once for each instruction set; the best one the CPU has is called (Highway's dynamic dispatch).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/linear_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/gelu-inl.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// One row: z += bias, kept in `before` where given, then y = f(z), in place.
template <class T>
void bias_activation_row(T* HWY_RESTRICT y, const T* HWY_RESTRICT bias, Activation activation, T* HWY_RESTRICT before,
                         std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) {
    auto z = load(d, y + i);
    if (bias) z = hn::Add(z, load(d, bias + i));
    if (before) store(z, d, before + i);
    if (activation == Activation::relu) z = hn::Max(z, hn::Zero(d));
    if (activation == Activation::swish) z = hn::Div(z, hn::Add(hn::Set(d, T(1)), hn::Exp(d, hn::Neg(z))));
    if (activation == Activation::gelu) {
      auto bell = z;
      z = hn::Mul(z, normal_distribution<T>(d, z, bell));
    }
    store(z, d, y + i);
  });
}

template <class T>
void bias_activation(T* y, const T* bias, Activation activation, T* before, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r)
    bias_activation_row(y + r * n, bias, activation, before ? before + r * n : nullptr, n);
}

/// dz = dy f'(z) for a whole array; `kept` is y for relu, z else.
template <class T>
void activation_gradient(const T* HWY_RESTRICT dy, const T* HWY_RESTRICT kept, Activation activation,
                         T* HWY_RESTRICT dz, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) {
    const auto g = load(d, dy + i);
    const auto k = load(d, kept + i);
    if (activation == Activation::relu) {
      store(hn::IfThenElseZero(hn::Gt(k, hn::Zero(d)), g), d, dz + i);
    } else if (activation == Activation::gelu) {
      // (z Phi)' = Phi + z phi, phi the density exp(-z^2 / 2) / sqrt(2 pi)
      auto bell = k;
      const auto distribution = normal_distribution<T>(d, k, bell);
      const auto density = hn::Mul(bell, hn::Set(d, T(0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi)));
      store(hn::Mul(g, hn::MulAdd(k, density, distribution)), d, dz + i);
    } else {
      const auto one = hn::Set(d, T(1));
      const auto sigmoid = hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(k))));
      // (z s)' = s + z s (1 - s)
      store(hn::Mul(g, hn::MulAdd(hn::Mul(k, sigmoid), hn::Sub(one, sigmoid), sigmoid)), d, dz + i);
    }
  });
}

/// sum[j] += sum over rows of x[r, j].
template <class T>
void add_column_sums(const T* HWY_RESTRICT x, std::int64_t rows, std::int64_t n, T* HWY_RESTRICT sum) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* HWY_RESTRICT row = x + r * n;
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) {
      store(hn::Add(load(d, sum + i), load(d, row + i)), d, sum + i);
    });
  }
}

HEED_INSTANTIATE_SIMD(bias_activation,
                      (float* y, const float* b, Activation f, float* z, std::int64_t r, std::int64_t n),
                      (double* y, const double* b, Activation f, double* z, std::int64_t r, std::int64_t n),
                      (y, b, f, z, r, n))
HEED_INSTANTIATE_SIMD(activation_gradient, (const float* g, const float* k, Activation f, float* z, std::int64_t n),
                      (const double* g, const double* k, Activation f, double* z, std::int64_t n), (g, k, f, z, n))
HEED_INSTANTIATE_SIMD(add_column_sums, (const float* x, std::int64_t r, std::int64_t n, float* s),
                      (const double* x, std::int64_t r, std::int64_t n, double* s), (x, r, n, s))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(bias_activation)
HEED_EXPORT_SIMD(activation_gradient)
HEED_EXPORT_SIMD(add_column_sums)

template <class T>
void linear_forward(CpuContext& device, Tensor<T> x, Tensor<T> weight, Tensor<T> bias, Activation activation,
                    Tensor<T> before, Tensor<T> y) {
  const std::int64_t rows = x.rows(), in = x.columns(), out = weight.dim(0);
  gemm(device, rows, out, in, T(1), {x.data(), in}, {weight.data(), in, true}, T(0), y.data(), out);
  if (bias || activation != Activation::none || before)
    simd::bias_activation(y.data(), bias.data(), activation, before.data(), rows, out);
}

template <class T>
void add_bias_activate(Tensor<T> y, Tensor<T> bias, Activation activation) {
  if (bias || activation != Activation::none)
    simd::bias_activation(y.data(), static_cast<const T*>(bias.data()), activation, static_cast<T*>(nullptr), y.rows(),
                          y.columns());
}

template <class T>
void linear_backward(CpuContext& device, Tensor<T> x, Tensor<T> weight, Activation activation, Tensor<T> kept,
                     Tensor<T> dy, Tensor<T> dx, bool adds_to_dx, Tensor<T> dweight, Tensor<T> dbias) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = x.rows(), in = x.columns(), out = weight.dim(0);
  Tensor<T> dz = dy;
  if (activation != Activation::none) {
    dz = device.arena.tensor<T>(dy.shape());
    simd::activation_gradient(dy.data(), kept.data(), activation, dz.data(), dy.size());
  }
  if (dx) gemm(device, rows, in, out, T(1), {dz.data(), out}, {weight.data(), in}, T(adds_to_dx), dx.data(), in);
  if (dweight) gemm(device, out, in, rows, T(1), {dz.data(), out, true}, {x.data(), in}, T(1), dweight.data(), in);
  if (dbias) simd::add_column_sums(dz.data(), rows, out, dbias.data());
}

template void linear_forward(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>, Activation, Tensor<float>,
                             Tensor<float>);
template void linear_forward(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>, Activation, Tensor<double>,
                             Tensor<double>);
template void add_bias_activate(Tensor<float>, Tensor<float>, Activation);
template void add_bias_activate(Tensor<double>, Tensor<double>, Activation);
template void linear_backward(CpuContext&, Tensor<float>, Tensor<float>, Activation, Tensor<float>, Tensor<float>,
                              Tensor<float>, bool, Tensor<float>, Tensor<float>);
template void linear_backward(CpuContext&, Tensor<double>, Tensor<double>, Activation, Tensor<double>, Tensor<double>,
                              Tensor<double>, bool, Tensor<double>, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
