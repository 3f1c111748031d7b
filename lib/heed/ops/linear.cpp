#include "heed/ops/linear.h"

#include <algorithm>
#include <type_traits>

#include "heed/ops/check.h"
#include "heed/ops/gemm/bfloat16.h"
#include "heed/ops/gemm/gemm.h"

namespace heed {
namespace {

/// A copy with every element rounded to bfloat16.
template <class T>
Tensor<T> rounded(Arena& arena, Tensor<T> x) {
  const Tensor<T> copy = arena.tensor<T>(x.shape());
  std::transform(x.data(), x.data() + x.size(), copy.data(),
                 [](T value) { return static_cast<T>(round_to_bfloat16(static_cast<float>(value))); });
  return copy;
}

}  // namespace

template <class T>
LinearRows<T>::LinearRows(Graph<T>& graph, Tensor<T> x) : graph_(graph), x_(x) {
  if constexpr (std::is_same_v<T, float>) {
    const Precision precision = graph.device().precision;
    if (precision == Precision::int8)
      int8_ = quantize_rows(graph.arena(), x.rows(), x.columns(), x.data(), x.columns());
    if (precision != Precision::bfloat16) return;
    if (has_fast_bfloat16()) {
      bfloat16_ = bfloat16_left(graph.arena(), x.rows(), x.columns(), {x.data(), x.columns()});
    } else {
      x_ = rounded(graph.arena(), x);
    }
  }
}

/// `size` elements that pack(memory) writes of a weight.
template <class T>
template <class Pack>
const T* LinearRows<T>::packed(Tensor<T> weight, std::int64_t size, Pack pack) const {
  if (graph_.packed()) return graph_.packed()->get(weight, size, pack);
  T* memory = graph_.arena().template tensor<T>({size}).data();
  pack(memory);
  return memory;
}

template <class T>
template <class Product>
void LinearRows<T>::for_columns(Tensor<T> weight, std::int64_t step, Product product) const {
  ThreadTeam* const team = graph_.device().team;
  const std::int64_t n = weight.dim(0);
  // A piece is worth handing over where it takes some microseconds.
  constexpr std::int64_t kPieceProducts = 1 << 16;
  const std::int64_t columns = std::max<std::int64_t>(1, kPieceProducts / (x_.rows() * weight.dim(1)) / step) * step;
  const std::int64_t pieces = (n + columns - 1) / columns;
  if (!team || pieces < 2) return product(0, n);
  team->run(static_cast<int>(pieces), [&](int i) { product(i * columns, std::min(n, (i + 1) * columns)); });
}

template <class T>
void LinearRows<T>::multiply_float32(Tensor<T> weight, Tensor<T> bias, Tensor<T> y) const {
  const std::int64_t n = weight.dim(0), k = weight.dim(1);
  const bool round = graph_.device().precision == Precision::bfloat16;
  const T* panels = packed(weight, Panels<T>::size(n, k), [&](T* memory) {
    const ArenaScope scope(graph_.arena());
    pack_panels(n, k, (round ? rounded(graph_.arena(), weight) : weight).data(), k, memory);
  });
  for_columns(weight, kPanelRows<T>, [&](std::int64_t begin, std::int64_t end) {
    gemm_rows(x_.rows(), end - begin, k, x_.data(), k, Panels<T>{panels + begin * k},
              bias ? bias.data() + begin : nullptr, y.data() + begin, n);
  });
}

template <class T>
void LinearRows<T>::multiply_bfloat16(Tensor<T> weight, Tensor<T> bias, Tensor<T> y) const {
  if constexpr (std::is_same_v<T, float>) {
    const std::int64_t n = weight.dim(0), k = weight.dim(1);
    const float* tiles = packed(weight, bfloat16_tile_words(k, n), [&](float* memory) {
      bfloat16_tiles(reinterpret_cast<std::uint32_t*>(memory), k, n, {weight.data(), k, true});
    });
    gemm_bfloat16(1, bfloat16_, {reinterpret_cast<const std::uint32_t*>(tiles), k, n}, 0, y.data(), n);
    add_bias_activate(y, bias, Activation::none);
  }
}

template <class T>
void LinearRows<T>::multiply_int8(Tensor<T> weight, Tensor<T> bias, Tensor<T> y) const {
  if constexpr (std::is_same_v<T, float>) {
    const std::int64_t n = weight.dim(0), k = weight.dim(1);
    const auto floats = int8_weight_bytes(n, k) / static_cast<std::int64_t>(sizeof(float));
    const float* integers = packed(weight, floats, [&](float* memory) {
      quantize_weight(n, k, weight.data(), k, reinterpret_cast<std::byte*>(memory));
    });
    for_columns(weight, kInt8Columns, [&](std::int64_t begin, std::int64_t end) {
      gemm_int8(int8_, n, begin, end, {reinterpret_cast<const std::byte*>(integers)}, bias.data(), y.data(), n);
    });
  }
}

template <class T>
void LinearRows<T>::multiply(Tensor<T> weight, Tensor<T> bias, Activation activation, Tensor<T> y) const {
  const ArenaScope scope(graph_.arena());
  if (int8_.values) {
    multiply_int8(weight, bias, y);
  } else if (bfloat16_.tiles) {
    multiply_bfloat16(weight, bias, y);
  } else {
    multiply_float32(weight, bias, y);
  }
  add_bias_activate(y, Tensor<T>(), activation);
}

template <class T>
Variable<T> linear(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   Activation activation) {
  check_shape("linear", "weight", weight.shape(), {weight.value.dim(0), x.value.columns()});
  if (bias) check_shape("linear", "bias", bias.shape(), {weight.value.dim(0)});
  const Variable<T> y = graph.result({x.value.rows(), weight.value.dim(0)});
  if (!graph.recording()) {
    const ArenaScope scope(graph.arena());
    LinearRows<T>(graph, x.value).multiply(weight.value, bias.value, activation, y.value);
    return y;
  }
  const bool keeps_input = activation == Activation::gelu || activation == Activation::swish;
  const Tensor<T> before = keeps_input ? graph.arena().template tensor<T>(y.shape()) : Tensor<T>();
  linear_forward(graph.device(), x.value, weight.value, bias.value, activation, before, y.value);
  graph.record([&device = graph.device(), x, weight, bias, activation, kept = keeps_input ? before : y.value, y] {
    linear_backward(device, x.value, weight.value, activation, kept, y.gradient, x.gradient, weight.gradient,
                    bias.gradient);
  });
  return y;
}

template class LinearRows<float>;
template class LinearRows<double>;
template Variable<float> linear(Graph<float>&, const Variable<float>&, const Variable<float>&, const Variable<float>&,
                                Activation);
template Variable<double> linear(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                 const Variable<double>&, Activation);

}  // namespace heed
