#include "heed/ops/linear.h"

#include <algorithm>
#include <type_traits>

#include "heed/base/thread_team.h"
#include "heed/ops/check.h"
#include "heed/ops/gemm/bfloat16.h"
#include "heed/ops/gemm/gemm.h"

namespace heed {
namespace {

/// out = every element rounded to bfloat16.
template <class T>
void round_all(const T* from, std::int64_t size, T* out) {
  std::transform(from, from + size, out,
                 [](T value) { return static_cast<T>(round_to_bfloat16(static_cast<float>(value))); });
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
      x_ = graph.arena().template tensor<T>(x.shape());
      round_all(static_cast<const T*>(x.data()), x.size(), x_.data());
    }
  }
}

/// `size` elements that pack(rows, memory) writes of a weight.
template <class T>
template <class Pack>
const T* LinearRows<T>::packed(Tensor<T> weight, std::int64_t size, Pack pack) const {
  if (graph_.packed()) return graph_.packed()->get(weight, size, pack);
  T* memory = graph_.arena().template tensor<T>({size}).data();
  pack(WeightRows<T>(weight), memory);
  return memory;
}

template <class T>
template <class Pack>
void LinearRows<T>::for_rows(const WeightRows<T>& rows, std::int64_t step, Pack pack) const {
  constexpr std::int64_t kPieceElements = 1 << 15;  // what is read stays in the cache until it is packed
  const std::int64_t count = std::max<std::int64_t>(1, kPieceElements / rows.columns() / step) * step;
  const std::int64_t pieces = (rows.rows() + count - 1) / count;
  const auto piece = [&](int i) {
    thread_local std::vector<T> scratch;
    const std::int64_t begin = i * count, end = std::min(rows.rows(), begin + count);
    pack(begin, end, rows.get(begin, end, scratch));
  };
  if (ThreadTeam* const team = graph_.device().team)
    team->run(static_cast<int>(pieces), piece);
  else
    for (int i = 0; i < pieces; ++i) piece(i);
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
  const T* panels = packed(weight, Panels<T>::size(n, k), [&](const WeightRows<T>& rows, T* memory) {
    for_rows(rows, kPanelRows<T>, [&](std::int64_t begin, std::int64_t end, const T* from) {
      std::vector<T> copy(static_cast<std::size_t>(round ? (end - begin) * k : 0));
      if (round) round_all(from, (end - begin) * k, copy.data());
      pack_panels(end - begin, k, round ? copy.data() : from, k, memory + begin * k);
    });
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
    const float* tiles = packed(weight, bfloat16_tile_words(k, n), [&](const WeightRows<float>& rows, float* memory) {
      std::vector<float> scratch;
      bfloat16_tiles(reinterpret_cast<std::uint32_t*>(memory), k, n, {rows.get(0, n, scratch), k, true});
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
    const float* integers = packed(weight, floats, [&](const WeightRows<float>& rows, float* memory) {
      for_rows(rows, kInt8Columns, [&](std::int64_t begin, std::int64_t end, const float* from) {
        quantize_weight(n, k, begin, end, from, k, reinterpret_cast<std::byte*>(memory));
      });
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
    const bool adds = !x.gradient.empty();
    linear_backward(device, x.value, weight.value, activation, kept, y.gradient.sum(), x.gradient.fill(), adds,
                    weight.gradient.sum(), bias.gradient.sum());
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
