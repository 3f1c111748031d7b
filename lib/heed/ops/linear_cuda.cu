#include "heed/ops/activation_cuda-inl.h"
#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/ops/integers_cuda-inl.h"
#include "heed/ops/linear.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Adds the bias to each row of z [rows, columns], and computes y = f(z), in packs of N. `before`, where not null,
/// receives z with the bias. The result goes to `y`, which may be z, or rounded to `y_rounded`, where that is not null.
template <class T, int N>
__global__ void bias_activation_kernel(const T* z, const T* bias, Activation activation, T* before, T* y,
                                       Bfloat16* y_rounded, std::int64_t n, std::int64_t columns) {
  for_each_element(n / N, [&](std::int64_t pack) {
    const std::int64_t i = N * pack;
    Pack<T, N> x = load_pack<N>(z + i);
    if (bias) x = add_packs(x, load_pack<N>(bias + i % columns));
    if (before) store_pack(x, before + i);
    with_activation(activation, [&](auto constant) {
      HEED_UNROLL
      for (int k = 0; k < N; ++k) x[k] = activate(constant.value, x[k]);
    });
    if (y_rounded)
      store_pack(round_pack(x), y_rounded + i);
    else
      store_pack(x, y + i);
  });
}

template <class T>
void add_bias_and_activate(CudaContext& device, const T* z, Tensor<T> bias, Activation activation, Tensor<T> before,
                           MaybeRounded<T> y) {
  const std::int64_t columns = y.columns(), n = y.rows() * columns;
  const bool packs = takes_packs<8>(columns, z, bias.data(), before.data(), y.full.data(), y.rounded.data());
  with_packs<8>(packs, [&](auto pack) {
    launch(device, shape_for_elements(n / pack.value), bias_activation_kernel<T, pack.value>, z, bias.data(),
           activation, before.data(), y.full.data(), y.rounded.data(), n, columns);
  });
}

/// Computes dz = dy f'(z), and gives it as summands to sum_packs(): the gradient of the bias is a sum over the rows of
/// dz. `kept` is what linear() keeps for the backward pass. dz is stored in `dz`, which may be `dy` or, rounded to
/// bfloat16 where T is float, in `rounded`; the sum is then that of the rounded numbers.
template <class T, class Dy, class Kept, int N>
struct ActivationGradient {
  static constexpr int kColumns = N, kRowsAtOnce = 2;
  struct Loaded {
    Pack<Dy, N> dy;
    Pack<Kept, N> kept;
  };
  const Dy* dy;
  const Kept* kept;
  Activation activation;
  T* dz;
  Bfloat16* rounded;
  std::int64_t columns;

  __device__ Loaded load(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * columns + column;
    return {load_pack<N>(dy + i), activation != Activation::none ? load_pack<N>(kept + i) : Pack<Kept, N>()};
  }
  __device__ std::array<Pack<T, N>, 1> operator()(const Loaded& loaded, std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * columns + column;
    Pack<T, N> gradient = widen_pack<T>(loaded.dy);
    const Pack<T, N> y = widen_pack<T>(loaded.kept);
    with_activation(activation, [&](auto constant) {
      if constexpr (constant.value != Activation::none) {
        HEED_UNROLL
        for (int k = 0; k < N; ++k) gradient[k] *= activation_derivative(constant.value, y[k]);
      }
    });
    if (!rounded) {
      store_pack(gradient, dz + i);
      return {gradient};
    }
    const Pack<Bfloat16, N> out = round_pack(gradient);
    store_pack(out, rounded + i);
    return {widen_pack<T>(out)};
  }
};

/// Computes dz (see ActivationGradient) from dy, which is in bfloat16 where dy.rounded is not empty, and adds the sum
/// of the rows of dz to dbias, unless that tensor is empty. dz.rounded, where not empty, may be dy.rounded; otherwise
/// dz is written over dy.
template <class T>
void activation_backward(CudaContext& device, Activation activation, MaybeRounded<T> kept, MaybeRounded<T> dy,
                         MaybeRounded<T> dz, Tensor<T> dbias) {
  const std::int64_t rows = dy.rows(), columns = dy.columns();
  const auto run = [&](const auto* from, const auto* saved) {
    using Dy = std::remove_cvref_t<decltype(*from)>;
    using Kept = std::remove_cvref_t<decltype(*saved)>;
    const bool packs = takes_packs<8>(columns, from, saved, dz.full.data(), dz.rounded.data());
    with_packs<8>(packs, [&](auto pack) {
      sum_packs(device, rows, columns,
                ActivationGradient<T, Dy, Kept, pack.value>{from, saved, activation, dz.full.data(), dz.rounded.data(),
                                                            columns},
                1, 1, std::array<T*, 1>{dbias.data()});
    });
  };
  const T* const full = dy.full.data();
  const T* const kept_full = kept.full.data();
  if constexpr (std::is_same_v<T, float>) {
    const Bfloat16 *const rounded = dy.rounded.data(), *const kept_rounded = kept.rounded.data();
    if (rounded && kept_rounded) return run(rounded, kept_rounded);
    if (rounded) return run(rounded, kept_full);
    if (kept_rounded) return run(full, kept_rounded);
  }
  run(full, kept_full);
}

/// Rows of 8-bit integers [rows, depth] with a scale for each row. Where a matrix has fewer rows or columns, the others
/// are 0.
struct Int8Rows {
  std::int8_t* values;
  float* scales;
  std::int64_t rows, depth;
};

std::int64_t whole_blocks(std::int64_t n) {
  return (n + kGpuInt8Block - 1) / kGpuInt8Block * kGpuInt8Block;
}

/// Returns the number of floats that have the size of Int8Rows.
std::int64_t floats_of_int8_rows(std::int64_t rows, std::int64_t depth) {
  return rows + rows * depth / static_cast<std::int64_t>(sizeof(float));
}

Int8Rows int8_rows_in(float* memory, std::int64_t rows, std::int64_t depth) {
  return {reinterpret_cast<std::int8_t*>(memory), memory + rows * depth / static_cast<std::int64_t>(sizeof(float)),
          rows, depth};
}

/// Converts the row of this warp of x [rows, columns], in packs of N; the warps after the last row write zeros.
template <int N>
__global__ void quantize_kernel(const float* x, std::int64_t rows, std::int64_t columns, Int8Rows to) {
  const std::int64_t r = IntegerTeam<N>::first_row(), count = r < rows ? columns : 0;
  if (r >= to.rows) return;
  std::int8_t* const values = to.values + r * to.depth;
  const float scale = store_integers<N>(x + r * columns, count, values);
  for (std::int64_t i = count + lane_of_warp(); i < to.depth; i += 32) values[i] = 0;
  if (lane_of_warp() == 0) to.scales[r] = scale;
}

void quantize(CudaContext& device, const float* x, std::int64_t rows, std::int64_t columns, Int8Rows to) {
  constexpr int kPack = 4;  // rows of `to` are multiples of 16 bytes
  launch(device, shape_for_warps(to.rows),
         takes_packs<kPack>(columns, x, to.values) ? quantize_kernel<kPack> : quantize_kernel<1>, x, rows, columns, to);
}

/// Computes y = f(z), where z is a sum of integers times the scales of its row and column, plus the bias, rounded once.
__global__ void finish_int8_kernel(const std::int32_t* sums, Int8Rows x, Int8Rows weight, const float* bias,
                                   Activation activation, float* y, std::int64_t n, std::int64_t columns) {
  for_each_element(n, [&](std::int64_t i) {
    const std::int64_t r = i / columns, c = i % columns;
    y[i] = activate(activation, std::fma(static_cast<float>(sums[r * weight.rows + c]), x.scales[r] * weight.scales[c],
                                         bias ? bias[c] : 0.0F));
  });
}

/// linear_inference() by products of 8-bit integers, with the numbers of gemm_int8() on a CPU.
void multiply_int8(CudaContext& device, PackedParameters<float>* packed, Tensor<float> x, Tensor<float> weight,
                   Tensor<float> bias, Activation activation, float* y) {
  const std::int64_t m = x.rows(), n = weight.dim(0), k = x.columns(), rows = whole_blocks(n), depth = whole_blocks(k);
  const auto new_memory = [&](std::int64_t count) { return device.arena.tensor<float>({count}).data(); };
  const std::int64_t size = floats_of_int8_rows(rows, depth);
  Int8Rows right{};
  if (packed) {
    const float* const memory = packed->get(weight, PackedForm::int8, size, [&](const auto&, float* to) {
      quantize(device, weight.data(), n, k, int8_rows_in(to, rows, depth));
      wait_for_gpu(device);  // other streams read it, too
    });
    right = int8_rows_in(const_cast<float*>(memory), rows, depth);
  } else {
    right = int8_rows_in(new_memory(size), rows, depth);
    quantize(device, weight.data(), n, k, right);
  }
  const std::int64_t left_rows = std::max(m, kGpuInt8Rows);
  const Int8Rows left = int8_rows_in(new_memory(floats_of_int8_rows(left_rows, depth)), left_rows, depth);
  quantize(device, x.data(), m, k, left);
  std::int32_t* const sums = device.arena.tensor<std::int32_t>({left_rows, rows}).data();
  gemm_rows(device, left_rows, rows, depth, left.values, right.values, sums);
  launch(device, shape_for_elements(m * n), finish_int8_kernel, sums, left, right, bias.data(), activation, y, m * n,
         n);
}

/// Returns a weight or a bias rounded to bfloat16, which `packed` keeps.
const Bfloat16* rounded_parameter(CudaContext& device, PackedParameters<float>& packed, Tensor<float> parameter) {
  const std::int64_t size = parameter.size();
  return reinterpret_cast<const Bfloat16*>(packed.get(
      Tensor<float>(parameter.data(), {1, size}), PackedForm::bfloat16, (size + 1) / 2, [&](const auto&, float* to) {
        round_matrix(device, parameter.data(), size, 1, size, reinterpret_cast<Bfloat16*>(to));
        wait_for_gpu(device);  // other streams read it, too
      }));
}

}  // namespace

template <class T>
MaybeRounded<T> operand_of_products(CudaContext& device, MaybeRounded<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    if (x.rounded) return x;
    x.rounded = rounded_memory<T>(device, x.full.shape());
    if (x.rounded) round_matrix(device, x.full.data(), x.columns(), x.rows(), x.columns(), x.rounded.data());
  }
  return x;
}

template <class T>
void linear_forward(CudaContext& device, MaybeRounded<T> x, MaybeRounded<T> weight, MaybeRounded<T> bias,
                    Activation activation, Tensor<T> before, MaybeRounded<T> y) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = x.rows(), in = x.columns(), out = weight.rows();
  // Calls product(x, W^T).
  const auto with_operands = [&](auto product) {
    x.with_operand(0, false,
                   [&](auto left) { weight.with_operand(0, true, [&](auto right) { product(left, right); }); });
  };
  const bool relu = activation == Activation::relu;
  if constexpr (std::is_same_v<T, float>)
    if (y.rounded && in > 0 && !before && (relu || activation == Activation::none)) {
      const Bfloat16* const rounded_bias = bias.full ? operand_of_products(device, bias).rounded.data() : nullptr;
      return with_operands([&](auto left, auto right) {
        rounded_gemm(device, rows, out, in, left, right, rounded_bias, relu, y.rounded.data());
      });
    }
  T* const z = y.rounded ? device.arena.tensor<T>({rows, out}).data() : y.full.data();
  // Where nothing else is to be done with the sums, the product adds the bias.
  const bool alone = activation == Activation::none && !before && !y.rounded && in > 0 && std::is_same_v<T, float>;
  with_operands([&](auto left, auto right) {
    gemm(device, rows, out, in, T(1), left, right, T(0), z, out, alone ? bias.full.data() : nullptr);
  });
  if (alone) return;
  if (bias.full || activation != Activation::none || before || y.rounded)
    add_bias_and_activate(device, z, bias.full, activation, before, y);
}

template <class T>
void linear_inference(CudaContext& device, PackedParameters<T>* packed, MaybeRounded<T> x, Tensor<T> weight,
                      Tensor<T> bias, Activation activation, MaybeRounded<T> y) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = x.rows(), in = x.columns(), out = weight.dim(0);
  // cuBLASLt adds the bias and applies a relu to products of float alone.
  const bool relu = activation == Activation::relu;
  const bool finishes = std::is_same_v<T, float> && (relu || activation == Activation::none);
  T* z = y.full.data();
  const auto multiply = [&](const auto* left, const auto* right) {
    gemm_rows(device, rows, out, in, left, right, z, finishes ? bias.data() : nullptr, finishes && relu);
  };
  if constexpr (std::is_same_v<T, float>) {
    if (device.precision == Precision::int8) return multiply_int8(device, packed, x.full, weight, bias, activation, z);
    if (takes_bfloat16(device)) {
      const auto rounded = [&](Tensor<T> parameter) {
        return packed ? rounded_parameter(device, *packed, parameter)
                      : operand_of_products(device, MaybeRounded<T>{parameter}).rounded.data();
      };
      const Bfloat16 *const left = operand_of_products(device, x).rounded.data(), *const right = rounded(weight);
      if (y.rounded && finishes)
        return gemm_rows(device, rows, out, in, left, right, y.rounded.data(), bias ? rounded(bias) : nullptr, relu);
      if (y.rounded) z = device.arena.tensor<T>({rows, out}).data();
      multiply(left, right);
    } else {
      multiply(x.full.data(), weight.data());
    }
  } else {
    multiply(x.full.data(), weight.data());
  }
  if (!finishes && (bias || activation != Activation::none || y.rounded))
    add_bias_and_activate(device, z, bias, activation, {}, y);
}

template <class T>
void linear_backward(CudaContext& device, MaybeRounded<T> x, MaybeRounded<T> weight, Activation activation,
                     MaybeRounded<T> kept, MaybeRounded<T> dy, MaybeRounded<T> dx, bool adds_to_dx, Tensor<T> dweight,
                     Tensor<T> dbias) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = x.rows(), in = x.columns(), out = weight.rows();
  // dz is rounded once for both products and the sums; a rounded dy is overwritten.
  MaybeRounded<T> dz = dy;
  if (!dz.rounded) dz.rounded = rounded_memory<T>(device, dy.full.shape());
  if (activation != Activation::none || (dz.rounded && !dy.rounded))
    activation_backward(device, activation, kept, dy, dz, dbias);
  else if (dbias)
    add_column_sums(device, dz, dbias);
  if (dx.full || dx.rounded)
    dz.with_operand(0, false, [&](auto left) {
      weight.with_operand(0, false, [&](auto right) {
        if constexpr (std::is_same_v<T, float>)
          if (dx.rounded) return rounded_gemm(device, rows, in, out, left, right, nullptr, false, dx.rounded.data());
        gemm(device, rows, in, out, T(1), left, right, T(adds_to_dx), dx.full.data(), in);
      });
    });
  if (dweight)
    dz.with_operand(0, true, [&](auto left) {
      x.with_operand(0, false,
                     [&](auto right) { gemm(device, out, in, rows, T(1), left, right, T(1), dweight.data(), in); });
    });
}

#define HEED_INSTANTIATE(T)                                                                                            \
  template MaybeRounded<T> operand_of_products(CudaContext&, MaybeRounded<T>);                                         \
  template void linear_forward(CudaContext&, MaybeRounded<T>, MaybeRounded<T>, MaybeRounded<T>, Activation, Tensor<T>, \
                               MaybeRounded<T>);                                                                       \
  template void linear_inference(CudaContext&, PackedParameters<T>*, MaybeRounded<T>, Tensor<T>, Tensor<T>,            \
                                 Activation, MaybeRounded<T>);                                                         \
  template void linear_backward(CudaContext&, MaybeRounded<T>, MaybeRounded<T>, Activation, MaybeRounded<T>,           \
                                MaybeRounded<T>, MaybeRounded<T>, bool, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
