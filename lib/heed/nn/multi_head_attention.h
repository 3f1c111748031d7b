#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/nn/attention_scoring.h"
#include "heed/nn/product.h"
#include "heed/nn/self_attention_positions.h"
#include "heed/nn/trace.h"
#include "heed/ops/additive_attention.h"
#include "heed/ops/attention.h"
#include "heed/ops/linear.h"
#include "heed/ops/rotary.h"

namespace heed {

/// Multi-head attention (Vaswani et al. 2017, section 3.2.2) with the parameters
/// <name>/{query,key,value,output}/{weight [D, D], bias [D]} and, with additive scores, <name>/scorer/weight [D], the
/// vectors v of all heads. The weights of query, key and value lie side by side in memory. One matrix product therefore
/// projects all three in self-attention, or key and value in cross-attention.
class MultiHeadAttention {
 public:
  /// Adds the parameters of the attention layer to `layout`. `width` is D, which `heads` must divide; `dropout` is the
  /// probability of dropping an attention weight in training. `relative_distance`, where not 0, is the distance k at
  /// which relative vectors are clipped (Shaw et al. 2018); these are then the parameters
  /// <name>/relative_{keys,values}/weight [2k + 1, D / heads]. Additive scores have no relative vectors.
  MultiHeadAttention(ParameterLayout& layout, const std::string& name, std::int64_t width, int heads, double dropout,
                     AttentionScoring scoring = AttentionScoring::dot, int relative_distance = 0)
      : width_(width), options_{.heads = heads, .causal = false, .dropout = dropout, .use = ResultUse::linear} {
    // The weights of query, key and value get the initial values of one [3D, D] matrix (Glorot initialisation of the
    // stacked shape): the standard deviation of a [D, D] matrix, divided by the square root of 2.
    const Initialiser stacked = Initialiser::xavier(1 / std::sqrt(2.0)), zeros = Initialiser::zeros();
    query_weight_ = layout.add(name + "/query/weight", {width, width}, stacked);
    key_weight_ = layout.add(name + "/key/weight", {width, width}, stacked, true);
    layout.add(name + "/value/weight", {width, width}, stacked, true);
    query_bias_ = layout.add(name + "/query/bias", {width}, zeros);
    key_bias_ = layout.add(name + "/key/bias", {width}, zeros, true);
    layout.add(name + "/value/bias", {width}, zeros, true);
    output_weight_ = layout.add(name + "/output/weight", {width, width}, Initialiser::xavier());
    output_bias_ = layout.add(name + "/output/bias", {width}, zeros);
    // The vector of each head has the standard deviation of a Glorot-initialised matrix [1, D / heads].
    if (scoring == AttentionScoring::additive)
      scorer_ = layout.add(name + "/scorer/weight", {width},
                           Initialiser::normal(std::sqrt(2 / (1 + static_cast<double>(width / heads)))));
    if (relative_distance == 0) return;
    const Shape vectors{2 * std::int64_t{relative_distance} + 1, width / heads};
    relative_keys_ = layout.add(name + "/relative_keys/weight", vectors, Initialiser::xavier());
    relative_values_ = layout.add(name + "/relative_values/weight", vectors, Initialiser::xavier());
  }

  /// Computes the self-attention of a packed batch. Shapes: x [N, D] -> [N, D]. With `causal`, a position attends to
  /// itself and to the earlier positions only. The attention weights go to `point.trace`, if `point` has a trace.
  /// `positions` is what SelfAttentionPositions::shared() returned for the stack.
  template <class T>
  Variable<T> self_attention(Graph<T>& graph, const Variable<T>& x, PackedOffsets packed, bool causal,
                             TracePoint<T> point = {}, const StackPositions<T>& positions = {}) const {
    const Variable<T> qkv = project_all(graph, x, positions.rotations ? ResultUse::any : use_of_projections());
    if (positions.rotations) rotary(graph, qkv, 2 * width_, packed, positions.rotations);
    AttentionOptions options = options_;
    options.causal = causal;
    return output(graph, attend<T>(graph, {qkv, 0}, {qkv, width_}, {qkv, 2 * width_}, packed, packed, options, point,
                                   position_terms(graph, positions)));
  }

  /// Computes the cross-attention of the decoder's positions over `memory`, which project_memory() has computed from
  /// the encoder's output. Shapes: x [N, D], memory [S, 2D] -> [N, D].
  template <class T>
  Variable<T> cross_attention(Graph<T>& graph, const Variable<T>& x, const Variable<T>& memory, PackedOffsets queries,
                              PackedOffsets keys, TracePoint<T> point = {}) const {
    const Variable<T> q = project_query(graph, x);
    return output(graph, attend<T>(graph, {q, 0}, {memory, 0}, {memory, width_}, queries, keys, options_, point));
  }

  /// Projects x [N, D] to query, key and value with one product. The result [N, 3D] holds the three side by side. `use`
  /// says which ops will read it.
  template <class T>
  Variable<T> project_all(Graph<T>& graph, const Variable<T>& x, ResultUse use = ResultUse::any) const {
    return linear(graph, x, graph.parameter(query_weight_, {3 * width_, width_}),
                  graph.parameter(query_bias_, {3 * width_}), Activation::none, use);
  }
  /// Projects x [R, D] to query, key and value for one step of decoding: row r is the token at position lengths[r] - 1.
  /// The result [R, 3D] holds the three side by side, with query and key rotated where the positions are rotary.
  template <class T>
  Variable<T> project_step(Graph<T>& graph, const Variable<T>& x, std::span<const std::int32_t> lengths,
                           const StackPositions<T>& positions) const {
    const Variable<T> qkv = project_all(graph, x);
    if (positions.rotations)
      graph.run([&](auto& device) { rotary_step(device, qkv.value, 2 * width_, lengths, positions.rotations); });
    return qkv;
  }
  /// Returns the terms that positions add to the self-attention of this layer, for attention() and cached_attention():
  /// the bias that the layers of the stack share, or this layer's relative vectors.
  template <class T>
  PositionBias<T> position_terms(Graph<T>& graph, const StackPositions<T>& positions) const {
    if (!relative_keys_) return positions.bias;
    return {.relative_keys = graph.parameter(relative_keys_), .relative_values = graph.parameter(relative_values_)};
  }
  /// Appends the tables of this layer's relative vectors to `tables`, without the distances above 0 where the attention
  /// is causal; nothing where the layer has none. `layer` is the number of the layer, from 1.
  template <class T>
  void add_tables(Graph<T>& graph, PositionTable::Stack stack, int layer, bool causal,
                  std::vector<PositionTable>& tables) const {
    if (!relative_keys_) return;
    using enum PositionTable::Term;
    for (const auto& [term, parameter] :
         {std::pair(relative_key, relative_keys_), {relative_value, relative_values_}}) {
      const Tensor<T> vectors = graph.parameter(parameter).value;
      const std::int64_t distance = vectors.rows() / 2, rows = causal ? distance + 1 : vectors.rows();
      tables.push_back({.stack = stack,
                        .term = term,
                        .layer = layer,
                        .row_axis = "distance",
                        .column_axis = "component",
                        .first_row = -distance,
                        .rows = rows,
                        .columns = vectors.columns(),
                        .values = table_values(graph.device().download(vectors), 0, 0, rows, vectors.columns())});
    }
  }
  /// Projects x [N, D] to the query [N, D].
  template <class T>
  Variable<T> project_query(Graph<T>& graph, const Variable<T>& x) const {
    return linear(graph, x, graph.parameter(query_weight_), graph.parameter(query_bias_), Activation::none,
                  use_of_projections());
  }
  /// Projects the encoder's output `memory` [S, D] to key and value. The result [S, 2D] holds the two side by side.
  template <class T>
  Variable<T> project_memory(Graph<T>& graph, const Variable<T>& memory) const {
    return linear(graph, memory, graph.parameter(key_weight_, {2 * width_, width_}),
                  graph.parameter(key_bias_, {2 * width_}), Activation::none, use_of_projections());
  }
  /// Applies the output projection to x [N, D], the concatenated results of all heads. Returns [N, D]. Only the op that
  /// adds the result to the residual stream may read the result.
  template <class T>
  Variable<T> output(Graph<T>& graph, const Variable<T>& x) const {
    return linear(graph, x, graph.parameter(output_weight_), graph.parameter(output_bias_), Activation::none,
                  ResultUse::residual);
  }

  /// Appends the matrix products of self_attention() to `products`. `place` says where the layer is: its members side,
  /// in_encoder and layer are those of the products.
  void add_self_attention_products(Product place, std::vector<Product>& products) const {
    add_product(of_norm(place), query_weight_, query_bias_, 3, products);
    add_output_product(place, products);
  }
  /// Appends the matrix products of cross_attention() to `products`; `place` is the place of the queries. The memory is
  /// projected for each source token.
  void add_cross_attention_products(Product place, std::vector<Product>& products) const {
    add_product(of_norm(place), query_weight_, query_bias_, 1, products);
    Product memory = place;
    memory.side = TokenSide::source;
    add_product(of_norm(memory), key_weight_, key_bias_, 2, products);
    add_output_product(place, products);
  }

  /// Returns the vectors v [D] of additive scores, or an absent variable where the scores are dot products.
  template <class T>
  Variable<T> scorer(Graph<T>& graph) const {
    return scorer_ ? graph.parameter(scorer_) : Variable<T>();
  }

  AttentionScoring scoring() const { return scorer_ ? AttentionScoring::additive : AttentionScoring::dot; }
  int heads() const { return options_.heads; }
  std::int64_t width() const { return width_; }

 private:
  /// Returns which ops read the projections of queries, keys and values: the attention alone, if it can compute from
  /// numbers that are rounded to bfloat16.
  ResultUse use_of_projections() const { return scorer_ || relative_keys_ ? ResultUse::any : ResultUse::attention; }
  /// Returns the place of a product whose input is the result of a normalisation.
  static Product of_norm(Product place) {
    place.rounded_input = true;
    return place;
  }
  /// Appends the product with `matrices` weights [D, D] that lie side by side to `products`.
  void add_product(Product place, ParameterId weight, ParameterId bias, int matrices,
                   std::vector<Product>& products) const {
    place.weight = weight;
    place.bias = bias;
    place.outputs = matrices * width_;
    place.inputs = width_;
    products.push_back(place);
  }

  /// Appends the output projection, whose input is the result of the attention.
  void add_output_product(Product place, std::vector<Product>& products) const {
    place.rounded_input = !scorer_;  // additive_attention() stores its result in full precision
    add_product(place, output_weight_, output_bias_, 1, products);
  }

  /// Runs the attention op. Where `point` has a trace (a receiver of attention weights) that wants them, hands the
  /// attention weights to the trace.
  template <class T>
  Variable<T> attend(Graph<T>& graph, const HeadsInput<T>& query, const HeadsInput<T>& key, const HeadsInput<T>& value,
                     PackedOffsets queries, PackedOffsets keys, const AttentionOptions& options,
                     const TracePoint<T>& point, const PositionBias<T>& positions = {}) const {
    if (!point.wants()) return score_and_attend(graph, query, key, value, queries, keys, options, {}, positions);
    const Variable<T> weights = attention_weights(graph, queries, keys, options.heads);
    const Variable<T> out = score_and_attend(graph, query, key, value, queries, keys, options, weights, positions);
    point.trace->attention(point.kind, point.layer, options.heads, queries, keys, weights);
    return out;
  }
  /// Runs the attention op of this layer's scores. `weights` may be absent. Throws Error where positions add terms to
  /// additive scores.
  template <class T>
  Variable<T> score_and_attend(Graph<T>& graph, const HeadsInput<T>& query, const HeadsInput<T>& key,
                               const HeadsInput<T>& value, PackedOffsets queries, PackedOffsets keys,
                               const AttentionOptions& options, const Variable<T>& weights,
                               const PositionBias<T>& positions) const {
    if (scorer_ && positions) throw Error("internal: additive scores have no terms of positions");
    if (scorer_)
      return additive_attention(graph, query, key, value, scorer(graph), width_, queries, keys, options, weights);
    return attention(graph, query, key, value, width_, queries, keys, options, weights, positions);
  }

  std::int64_t width_;
  AttentionOptions options_;
  ParameterId query_weight_, key_weight_, query_bias_, key_bias_, output_weight_, output_bias_;
  ParameterId relative_keys_, relative_values_;
  ParameterId scorer_;  // absent where the scores are dot products
};

}  // namespace heed
