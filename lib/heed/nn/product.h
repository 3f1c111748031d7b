#pragma once

#include "heed/autograd/parameters.h"
#include "heed/ops/gated_unit.h"
#include "heed/ops/linear.h"

namespace heed {

/// Whether a matrix product is computed for each source token or for each target token.
enum class TokenSide { source, target };

/// One matrix product of a model: rows [N, inputs] times a weight [outputs, inputs]. The weight may consist of several
/// parameters that lie side by side (query, key and value). Modules list their products, so that cost models and the
/// packing of weights know them without parsing the names of parameters.
struct Product {
  ParameterId weight = {}, bias = {};
  std::int64_t outputs = 0, inputs = 0;
  TokenSide side = TokenSide::source;
  /// The number of source tokens or target tokens, as `side` says, for which the product has one row: above 1 where a
  /// model has merged tokens.
  int tokens_per_row = 1;
  /// Whether the matrix product is in the encoder. A decoder product over source tokens is the cross-attention's key
  /// and value projection.
  bool in_encoder = false;
  /// The number of the layer, from 0, in the encoder or in the decoder.
  int layer = 0;
  /// The activation function that is applied to the result. If `gated`, the function is applied to the first half of
  /// the columns, which then multiplies the second half (ops/gated_unit.h).
  Activation activation = Activation::none;
  bool gated = false;
  /// The probability of dropping an element afterwards.
  double dropout = 0;
  /// `result_use` says which ops read the result. `rounded_input` is true if a training with bfloat16 products stores
  /// the input of the product as bfloat16; this is the case if only linear() reads the input, or if the input is the
  /// result of a normalisation.
  ResultUse result_use = ResultUse::any;
  bool rounded_input = false;

  std::int64_t size() const { return outputs * inputs; }
  Shape shape() const { return {outputs, inputs}; }

  /// Computes the product with the bias, if there is one, and the activation function. Shapes: x [N, inputs] -> [N,
  /// outputs], or [N, outputs / 2] if `gated`.
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x) const {
    const auto multiply = [&](Activation f, ResultUse use) {
      return linear(graph, x, graph.parameter(weight, shape()), bias ? graph.parameter(bias, {outputs}) : Variable<T>(),
                    f, use);
    };
    if (!gated) return multiply(activation, result_use);
    return gated_unit(graph, multiply(Activation::none, ResultUse::any), activation, result_use);
  }
};

}  // namespace heed
