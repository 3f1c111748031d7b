#include <algorithm>
#include <optional>

#include "heed/ops/gemm/gemm.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/prepared_weights.h"
#include "heed/ops/linear.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/linear_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/activation-inl.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Adds the bias to a row of n elements, z = y + bias, and applies the activation function in place, y = f(z). Where
/// `before` is not null, z is stored in `before`. A null `bias` adds nothing.
template <class T>
void bias_activation_row(T* HWY_RESTRICT y, const T* HWY_RESTRICT bias, Activation activation, T* HWY_RESTRICT before,
                         std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    auto z = load(d, y + i);
    if (bias) z = hn::Add(z, load(d, bias + i));
    if (before) store(z, d, before + i);
    store(activate<T>(d, activation, z), d, y + i);
  });
}

/// Adds the bias to `rows` rows of n elements, z = y + bias, and applies the activation function f in place, y = f(z).
/// Where `before` is not null, z is stored in `before`. A null `bias` adds nothing.
template <class T>
void bias_activation(T* y, const T* bias, Activation activation, T* before, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r)
    bias_activation_row(y + r * n, bias, activation, before ? before + r * n : nullptr, n);
}

/// Computes the backward pass of the activation function f for n elements: dz = dy f'(z), written over dy. `kept` holds
/// y = f(z) for relu and tanh, and z for gelu and swish.
template <class T>
void activation_gradient(T* HWY_RESTRICT dy, const T* HWY_RESTRICT kept, Activation activation, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto g = load(d, dy + i);
    const auto k = load(d, kept + i);
    if (activation == Activation::relu) {
      store(hn::IfThenElseZero(hn::Gt(k, hn::Zero(d)), g), d, dy + i);
    } else if (activation == Activation::tanh) {
      store(hn::Mul(g, hn::NegMulAdd(k, k, hn::Set(d, T(1)))), d, dy + i);
    } else {
      auto value = k;
      store(hn::Mul(g, smooth_derivative<T>(d, activation, k, value)), d, dy + i);
    }
  });
}

/// Adds up the columns of a matrix x [rows, n]: sum[j] += sum over all rows r of x[r, j].
template <class T>
void add_column_sums(const T* HWY_RESTRICT x, std::int64_t rows, std::int64_t n, T* HWY_RESTRICT sum) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* HWY_RESTRICT row = x + r * n;
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                              HWY_ATTR { store(hn::Add(load(d, sum + i), load(d, row + i)), d, sum + i); });
  }
}

HEED_INSTANTIATE_SIMD(bias_activation,
                      (float* y, const float* b, Activation f, float* z, std::int64_t r, std::int64_t n),
                      (double* y, const double* b, Activation f, double* z, std::int64_t r, std::int64_t n),
                      (y, b, f, z, r, n))
HEED_INSTANTIATE_SIMD(activation_gradient, (float* g, const float* k, Activation f, std::int64_t n),
                      (double* g, const double* k, Activation f, std::int64_t n), (g, k, f, n))
HEED_INSTANTIATE_SIMD(add_column_sums, (const float* x, std::int64_t r, std::int64_t n, float* s),
                      (const double* x, std::int64_t r, std::int64_t n, double* s), (x, r, n, s))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(bias_activation)
HEED_EXPORT_SIMD(activation_gradient)
HEED_EXPORT_SIMD(add_column_sums)

namespace {

/// Calls body(begin, count) for parts of the `rows` rows of a layer, `count` rows from row `begin` on, in ascending
/// order. Where the products multiply bfloat16 numbers, the parts are so small that their numbers are still in the
/// cache when the next step reads them (a product, the activation function, the rounding). Products in float32 take
/// longer, and divide their rows themselves.
template <class Body>
void for_parts_of_rows(const CpuContext& device, std::int64_t rows, Body body) {
  constexpr std::int64_t kFew = 128;
  static_assert(kFew % Bfloat16Gradient::kPart == 0);
  const std::int64_t most = takes_bfloat16(device) ? kFew : rows;
  for (std::int64_t begin = 0; begin < rows; begin += most) body(begin, std::min(most, rows - begin));
}

/// Computes y = f(x W^T + b) with bfloat16 products, which add the bias, apply f and round y themselves. `right` is W^T
/// in tiles, and f is none or relu. `bias` may be null.
void multiply_and_finish(CpuContext& device, MaybeRounded<float> x, const RightOperand<float>& right, const float* bias,
                         Activation activation, MaybeRounded<float> y) {
  for_parts_of_rows(device, x.rows(), [&](std::int64_t begin, std::int64_t count) {
    const ArenaScope scope(device.arena);
    const Bfloat16Finish finish{bias, activation == Activation::relu, y.rounded ? y.rounded.row(begin) : nullptr};
    x.with_operand(begin, false, [&](auto operand) {
      gemm_bfloat16(bfloat16_left_operand(device.arena, count, right.k, operand), {right.tiles, right.k, right.n},
                    finish, y.rounded ? nullptr : y.full.row(begin), right.n);
    });
  });
}

}  // namespace

template <class T>
void linear_forward(CpuContext& device, MaybeRounded<T> x, MaybeRounded<T> stored_weight, MaybeRounded<T> stored_bias,
                    Activation activation, Tensor<T> before, MaybeRounded<T> y) {
  const ArenaScope scope(device.arena);
  const Tensor<T> weight = stored_weight.full, bias = stored_bias.full;
  const std::int64_t rows = x.rows(), in = x.columns(), out = weight.dim(0);
  const RightOperand<T> right = prepare_weight(device, in, out, GemmOperand<T>{weight.data(), in, true});
  if constexpr (std::is_same_v<T, float>)
    if (right.tiles && !before && (activation == Activation::none || activation == Activation::relu))
      return multiply_and_finish(device, x, right, bias.data(), activation, y);
  for_parts_of_rows(device, rows, [&](std::int64_t begin, std::int64_t count) {
    const ArenaScope part(device.arena);
    T* const to = y.rounded ? device.arena.tensor<T>({count, out}).data() : y.full.row(begin);
    x.with_operand(begin, false, [&](auto operand) { gemm(device, count, T(1), operand, right, T(0), to, out); });
    if (bias || activation != Activation::none || before)
      simd::bias_activation(to, static_cast<const T*>(bias.data()), activation,
                            before ? before.row(begin) : static_cast<T*>(nullptr), count, out);
    if constexpr (std::is_same_v<T, float>)
      if (y.rounded) convert_to_bfloat16(to, count * out, y.rounded.row(begin));
  });
}

template <class T>
void add_bias_activate(Tensor<T> y, Tensor<T> bias, Activation activation) {
  if (bias || activation != Activation::none)
    simd::bias_activation(y.data(), static_cast<const T*>(bias.data()), activation, static_cast<T*>(nullptr), y.rows(),
                          y.columns());
}

template <class T>
void linear_backward(CpuContext& device, MaybeRounded<T> x, MaybeRounded<T> stored_weight, Activation activation,
                     MaybeRounded<T> kept, MaybeRounded<T> stored_dy, MaybeRounded<T> stored_dx, bool adds_to_dx,
                     Tensor<T> dweight, Tensor<T> dbias) {
  // A CPU stores gradients in full.
  const Tensor<T> weight = stored_weight.full, dy = stored_dy.full, dx = stored_dx.full;
  const std::int64_t rows = x.rows(), in = x.columns(), out = weight.dim(0);
  if (rows == 0) return;
  const ArenaScope scope(device.arena);
  const RightOperand<T> right =
      dx ? prepare_weight(device, out, in, GemmOperand<T>{weight.data(), in}) : RightOperand<T>();
  // dz for the products in bfloat16 that give dx and dweight. Laying it out also computes the derivative of a relu
  // whose result is stored as bfloat16, and dbias.
  const Bfloat16* const relu = activation == Activation::relu ? kept.rounded.data() : nullptr;
  std::optional<Bfloat16Gradient> rounded_dz;
  if constexpr (std::is_same_v<T, float>)
    if (takes_bfloat16(device)) rounded_dz.emplace(device.arena, rows, out, dy.data(), relu);
  for_parts_of_rows(device, rows, [&](std::int64_t begin, std::int64_t count) {
    const ArenaScope part(device.arena);
    T* const dz = dy.row(begin);
    if (activation != Activation::none && !relu)
      simd::activation_gradient(dz, static_cast<const T*>(kept.full.row(begin)), activation, count * out);
    if constexpr (std::is_same_v<T, float>)
      if (rounded_dz) {
        const auto left = rounded_dz->add(device.arena, begin, begin + count, dbias.data());
        if (dx) gemm_bfloat16(1, left, {right.tiles, out, in}, static_cast<float>(adds_to_dx), dx.row(begin), in);
        return;
      }
    if (dx) gemm(device, count, T(1), GemmOperand<T>{dz, out}, right, T(adds_to_dx), dx.row(begin), in);
    if (dbias) simd::add_column_sums(static_cast<const T*>(dz), count, out, dbias.data());
  });
  if (!dweight) return;
  x.with_operand(0, false, [&](auto operand) {
    const RightOperand<T> rows_of_x = prepare_right_operand(device, rows, in, operand);
    if constexpr (std::is_same_v<T, float>)
      if (rounded_dz)
        return gemm_bfloat16(1, rounded_dz->transposed(), {rows_of_x.tiles, rows, in}, 1, dweight.data(), in);
    gemm(device, out, T(1), GemmOperand<T>{dy.data(), out, true}, rows_of_x, T(1), dweight.data(), in);
  });
}

template void linear_forward(CpuContext&, MaybeRounded<float>, MaybeRounded<float>, MaybeRounded<float>, Activation,
                             Tensor<float>, MaybeRounded<float>);
template void linear_forward(CpuContext&, MaybeRounded<double>, MaybeRounded<double>, MaybeRounded<double>, Activation,
                             Tensor<double>, MaybeRounded<double>);
template void add_bias_activate(Tensor<float>, Tensor<float>, Activation);
template void add_bias_activate(Tensor<double>, Tensor<double>, Activation);
template void linear_backward(CpuContext&, MaybeRounded<float>, MaybeRounded<float>, Activation, MaybeRounded<float>,
                              MaybeRounded<float>, MaybeRounded<float>, bool, Tensor<float>, Tensor<float>);
template void linear_backward(CpuContext&, MaybeRounded<double>, MaybeRounded<double>, Activation, MaybeRounded<double>,
                              MaybeRounded<double>, MaybeRounded<double>, bool, Tensor<double>, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
