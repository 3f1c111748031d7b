#include "heed/ops/linear.h"

#include <algorithm>
#include <type_traits>

#include "heed/ops/check.h"
#include "heed/ops/gemm/bfloat16.h"
#include "heed/ops/gemm/gemm.h"

namespace heed {
namespace {

/// `size` elements that pack(memory) writes of a weight: kept with the graph's packed parameters, else in its memory.
template <class T, class Pack>
const T* packed(Graph<T>& graph, Tensor<T> weight, std::int64_t size, Pack pack) {
  if (graph.packed()) return graph.packed()->get(weight, size, pack);
  T* memory = graph.arena().template tensor<T>({size}).data();
  pack(memory);
  return memory;
}

template <class T>
void float32_rows(Graph<T>& graph, Tensor<T> x, Tensor<T> weight, Tensor<T> bias, Activation activation, Tensor<T> y) {
  const std::int64_t n = weight.dim(0), k = weight.dim(1);
  const auto pack = [&](T* panels) { pack_panels(n, k, weight.data(), k, panels); };
  linear_rows(x, Panels<T>{packed(graph, weight, Panels<T>::size(n, k), pack)}, bias, activation, y);
}

/// A copy with every element rounded to bfloat16.
Tensor<float> rounded(Arena& arena, Tensor<float> x) {
  const Tensor<float> copy = arena.tensor<float>(x.shape());
  std::transform(x.data(), x.data() + x.size(), copy.data(), round_to_bfloat16);
  return copy;
}

void bfloat16_rows(Graph<float>& graph, Tensor<float> x, Tensor<float> weight, Tensor<float> bias,
                   Activation activation, Tensor<float> y) {
  const std::int64_t n = weight.dim(0), k = weight.dim(1);
  if (has_fast_bfloat16()) {
    const auto pack = [&](float* memory) {
      bfloat16_tiles(reinterpret_cast<std::uint32_t*>(memory), k, n, {weight.data(), k, true});
    };
    const float* tiles = packed(graph, weight, bfloat16_tile_words(k, n), pack);
    linear_rows(graph.arena(), x, {reinterpret_cast<const std::uint32_t*>(tiles), k, n}, bias, activation, y);
  } else {
    const auto pack = [&](float* panels) {
      const ArenaScope scope(graph.arena());
      pack_panels(n, k, rounded(graph.arena(), weight).data(), k, panels);
    };
    const float* panels = packed(graph, weight, Panels<float>::size(n, k), pack);
    linear_rows(rounded(graph.arena(), x), Panels<float>{panels}, bias, activation, y);
  }
}

void int8_rows(Graph<float>& graph, Tensor<float> x, Tensor<float> weight, Tensor<float> bias, Activation activation,
               Tensor<float> y) {
  const std::int64_t n = weight.dim(0), k = weight.dim(1);
  const auto pack = [&](float* memory) {
    quantize_weight(n, k, weight.data(), k, reinterpret_cast<std::byte*>(memory));
  };
  const auto floats = int8_weight_bytes(n, k) / static_cast<std::int64_t>(sizeof(float));
  const float* memory = packed(graph, weight, floats, pack);
  linear_rows(graph.arena(), x, Int8Weight{reinterpret_cast<const std::byte*>(memory)}, bias, activation, y);
}

}  // namespace

template <class T>
Variable<T> linear(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   Activation activation) {
  check_shape("linear", "weight", weight.shape(), {weight.value.dim(0), x.value.columns()});
  if (bias) check_shape("linear", "bias", bias.shape(), {weight.value.dim(0)});
  const Variable<T> y = graph.result({x.value.rows(), weight.value.dim(0)});
  if (!graph.recording()) {
    const ArenaScope scope(graph.arena());
    const Precision precision = graph.device().precision;
    if constexpr (std::is_same_v<T, float>) {
      if (precision == Precision::bfloat16)
        bfloat16_rows(graph, x.value, weight.value, bias.value, activation, y.value);
      if (precision == Precision::int8) int8_rows(graph, x.value, weight.value, bias.value, activation, y.value);
    }
    if (precision == Precision::float32 || !std::is_same_v<T, float>)
      float32_rows(graph, x.value, weight.value, bias.value, activation, y.value);
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

template Variable<float> linear(Graph<float>&, const Variable<float>&, const Variable<float>&, const Variable<float>&,
                                Activation);
template Variable<double> linear(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                 const Variable<double>&, Activation);

}  // namespace heed
