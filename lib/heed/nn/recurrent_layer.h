#pragma once

#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/base/error.h"
#include "heed/nn/product.h"
#include "heed/ops/dropout.h"
#include "heed/ops/linear.h"
#include "heed/ops/recurrence.h"

namespace heed {

/// The kind and the sizes of a recurrent layer.
struct RecurrentLayerOptions {
  RecurrentCell cell = RecurrentCell::gru;
  Direction direction = Direction::forward;
  std::int64_t input = 0;    ///< I, the width of a token's input
  std::int64_t width = 0;    ///< D, the width of the hidden state of one direction
  std::int64_t context = 0;  ///< C, the width of a context that every step of a sequence reads; 0: no context
};

/// A layer of GRUs or LSTMs (see ops/recurrent_cell.h for the formulas, which are PyTorch's). The parameters are, with
/// G gates in PyTorch's order, <name>/input/{weight [G D, I], bias [G D]}, <name>/hidden/{weight [G D, D], bias [G D]}
/// and, with a context, <name>/context/weight [G D, C], which corresponds to further columns of PyTorch's weight_ih. A
/// layer of both directions has <name>/forward/... and <name>/backward/...; parameters of the same kind lie side by
/// side in memory, so that one product computes the input gates of both directions.
///
/// The weights get PyTorch's initial distribution, uniform in +-1 / sqrt(D), so that a baseline starts as the layers
/// that it is compared with; the biases are 0, as in all other layers of heed.
class RecurrentLayer {
 public:
  RecurrentLayer(ParameterLayout& layout, const std::string& name, const RecurrentLayerOptions& options)
      : options_(options) {
    const std::int64_t gates = gate_count(options.cell) * options.width;
    const auto add = [&](const char* part, const Shape& shape) {
      // Glorot's limit is gain * sqrt(6 / (fan_in + fan_out)); this gain makes the limit 1 / sqrt(D).
      const Initialiser initial = shape.rank() == 1
                                      ? Initialiser::zeros()
                                      : Initialiser::xavier(std::sqrt(static_cast<double>(shape[0] + shape[1]) /
                                                                      (6 * static_cast<double>(options.width))));
      if (options.direction != Direction::both) return layout.add(name + part, shape, initial);
      const ParameterId first = layout.add(name + "/forward" + part, shape, initial);
      layout.add(name + "/backward" + part, shape, initial, true);
      return first;
    };
    input_weight_ = add("/input/weight", {gates, options.input});
    input_bias_ = add("/input/bias", {gates});
    if (options.context) context_weight_ = add("/context/weight", {gates, options.context});
    hidden_weight_ = add("/hidden/weight", {gates, options.width});
    hidden_bias_ = add("/hidden/bias", {gates});
  }

  /// Returns the width W D of the output, where W is the number of directions.
  std::int64_t output_width() const { return direction_count(options_.direction) * options_.width; }
  const RecurrentLayerOptions& options() const { return options_; }

  /// Runs the layer over a packed batch. Shapes: x [N, I]; context [B, C], or absent where the layer has no context;
  /// first [B, W D], where an absent state means zeros -> hidden [N, W D], last state [B, W D].
  template <class T>
  RecurrenceResult<T> operator()(Graph<T>& graph, const Variable<T>& x, PackedOffsets packed,
                                 const RecurrentState<T>& first = {}, const Variable<T>& context = {}) const {
    return recurrence(graph, options_.cell, options_.direction, project_input(graph, x),
                      project_context(graph, context), parameter(graph, hidden_weight_, options_.width),
                      parameter(graph, hidden_bias_), first, packed);
  }

  /// Takes one step for R rows, each of another sequence: the state after a token. The layer must read forward. Shapes:
  /// x [R, I], state [R, D] (not absent); `context_gates` [R, G D] is what project_context() has returned for the row's
  /// sequence. In inference the state has the same bits as in a run over the whole sequence.
  template <class T>
  RecurrentState<T> step(Graph<T>& graph, const Variable<T>& x, const RecurrentState<T>& state,
                         const Variable<T>& context_gates = {}) const {
    if (options_.direction != Direction::forward)
      throw Error("internal: RecurrentLayer: step() of a layer that reads backward");
    return recurrent_cell(graph, options_.cell, project_input(graph, x), context_gates,
                          linear(graph, state.hidden, graph.parameter(hidden_weight_), {}),
                          graph.parameter(hidden_bias_), state);
  }

  /// Appends the matrix products of the layer to `products`, without that of the context. `place` says where the layer
  /// is: its members side, in_encoder and layer are those of the products.
  void add_products(Product place, std::vector<Product>& products) const {
    const std::int64_t gates = direction_count(options_.direction) * gate_count(options_.cell) * options_.width;
    const auto add = [&](ParameterId weight, ParameterId bias, std::int64_t inputs) {
      place.weight = weight;
      place.bias = bias;
      place.outputs = gates;
      place.inputs = inputs;
      products.push_back(place);
    };
    add(input_weight_, input_bias_, options_.input);
    add(hidden_weight_, hidden_bias_, options_.width);
  }
  /// Returns the matrix product of project_context(), with the members of `place` that say where the layer is.
  Product context_product(Product place) const {
    place.weight = context_weight_;
    place.outputs = direction_count(options_.direction) * gate_count(options_.cell) * options_.width;
    place.inputs = options_.context;
    return place;
  }

  /// Computes what a context adds to the input gates of every step, once for all steps of a sequence. Returns an absent
  /// variable where the layer has no context. Shapes: context [B, C] -> [B, W G D].
  template <class T>
  Variable<T> project_context(Graph<T>& graph, const Variable<T>& context) const {
    if (!context_weight_) return {};
    return linear(graph, context, parameter(graph, context_weight_, options_.context), {});
  }

 private:
  /// Computes the input gates x Wx^T + bx of all directions. Shapes: x [N, I] -> [N, W G D].
  template <class T>
  Variable<T> project_input(Graph<T>& graph, const Variable<T>& x) const {
    return linear(graph, x, parameter(graph, input_weight_, options_.input), parameter(graph, input_bias_));
  }

  /// Returns the weights [W G D, columns], or the biases [W G D] where `columns` is 0, of all directions as one
  /// parameter.
  template <class T>
  Variable<T> parameter(Graph<T>& graph, ParameterId id, std::int64_t columns = 0) const {
    const std::int64_t gates = direction_count(options_.direction) * gate_count(options_.cell) * options_.width;
    return graph.parameter(id, columns ? Shape{gates, columns} : Shape{gates});
  }

  RecurrentLayerOptions options_;
  ParameterId input_weight_, input_bias_, context_weight_, hidden_weight_, hidden_bias_;
};

/// Several recurrent layers, one on top of the other, with dropout between them, as PyTorch's nn.GRU and nn.LSTM: a
/// layer's input is dropout(hidden states of the layer below). The parameters are those of <name>/layers/0 (which reads
/// the input and the context), <name>/layers/1 ...
class RecurrentStack {
 public:
  /// Adds the parameters of `depth` layers; `options` describes the lowest layer.
  RecurrentStack(ParameterLayout& layout, const std::string& name, RecurrentLayerOptions options, int depth,
                 double dropout)
      : dropout_(dropout) {
    for (int i = 0; i < depth; ++i) {
      layers_.emplace_back(layout, name + "/layers/" + std::to_string(i), options);
      options.input = layers_.back().output_width();
      options.context = 0;
    }
  }

  int depth() const { return static_cast<int>(layers_.size()); }
  std::int64_t output_width() const { return layers_.back().output_width(); }
  const RecurrentLayer& operator[](int layer) const { return layers_[static_cast<std::size_t>(layer)]; }

  /// Runs all layers over a packed batch and returns the hidden states of the highest layer. `first` holds the first
  /// state of each layer, or is empty: zeros. `last`, where not empty, receives the last state of each layer. Shapes: x
  /// [N, I], context [B, C], or absent where the stack has no context, states [B, W D] -> [N, W D].
  template <class T>
  Variable<T> operator()(Graph<T>& graph, Variable<T> x, PackedOffsets packed,
                         std::type_identity_t<std::span<const RecurrentState<T>>> first = {},
                         std::type_identity_t<std::span<RecurrentState<T>>> last = {},
                         const Variable<T>& context = {}) const {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (i > 0) x = dropout(graph, x, dropout_);
      const RecurrenceResult<T> result = layers_[i](graph, x, packed, first.empty() ? RecurrentState<T>() : first[i],
                                                    i == 0 ? context : Variable<T>());
      if (!last.empty()) last[i] = result.last;
      x = result.hidden;
    }
    return x;
  }

  /// Takes one step of all layers for R rows (see RecurrentLayer::step()) and returns the hidden states of the highest
  /// layer. `states` holds the state of each layer, and is replaced by the states after the step. Shapes: x [R, I],
  /// states [R, D], context gates of the lowest layer [R, G D] or absent -> [R, D].
  template <class T>
  Variable<T> step(Graph<T>& graph, Variable<T> x, std::type_identity_t<std::span<RecurrentState<T>>> states,
                   const Variable<T>& context_gates = {}) const {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (i > 0) x = dropout(graph, x, dropout_);
      states[i] = layers_[i].step(graph, x, states[i], i == 0 ? context_gates : Variable<T>());
      x = states[i].hidden;
    }
    return x;
  }

 private:
  std::vector<RecurrentLayer> layers_;
  double dropout_;
};

}  // namespace heed
