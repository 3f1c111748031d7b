#pragma once

#include <cmath>
#include <string>

#include "heed/nn/trace.h"
#include "heed/ops/attention.h"
#include "heed/ops/linear.h"

namespace heed {

/// Multi-head attention (Vaswani et al. 2017, section 3.2.2) with parameters
/// <name>/{query,key,value,output}/{weight [D, D], bias [D]}. Query, key and value lie side by side in memory: one
/// product projects all three (self-attention) or key and value (over an encoder's output).
class MultiHeadAttention {
 public:
  MultiHeadAttention(ParameterLayout& layout, const std::string& name, std::int64_t width, int heads, double dropout)
      : width_(width), options_{.heads = heads, .causal = false, .dropout = dropout} {
    // Three stacked matrices start like one [3D, D] matrix would (Glorot over the fused shape).
    const Initialiser stacked = Initialiser::xavier(1 / std::sqrt(2.0)), zeros = Initialiser::zeros();
    query_weight_ = layout.add(name + "/query/weight", {width, width}, stacked);
    key_weight_ = layout.add(name + "/key/weight", {width, width}, stacked, true);
    layout.add(name + "/value/weight", {width, width}, stacked, true);
    query_bias_ = layout.add(name + "/query/bias", {width}, zeros);
    key_bias_ = layout.add(name + "/key/bias", {width}, zeros, true);
    layout.add(name + "/value/bias", {width}, zeros, true);
    output_weight_ = layout.add(name + "/output/weight", {width, width}, Initialiser::xavier());
    output_bias_ = layout.add(name + "/output/bias", {width}, zeros);
  }

  /// Self-attention of a packed batch: x [N, D] -> [N, D]. `causal`: a position attends to itself and those before it.
  template <class T>
  Variable<T> self_attention(Graph<T>& graph, const Variable<T>& x, PackedOffsets packed, bool causal,
                             TracePoint point = {}) const {
    const Variable<T> qkv = project_all(graph, x);
    AttentionOptions options = options_;
    options.causal = causal;
    return output(graph, attend<T>(graph, {qkv, 0}, {qkv, width_}, {qkv, 2 * width_}, packed, packed, options, point));
  }

  /// Cross-attention over the encoder's output: x [N, D], memory [S, D] -> [N, D].
  template <class T>
  Variable<T> cross_attention(Graph<T>& graph, const Variable<T>& x, const Variable<T>& memory, PackedOffsets queries,
                              PackedOffsets keys, TracePoint point = {}) const {
    const Variable<T> q = project_query(graph, x), kv = project_memory(graph, memory);
    return output(graph, attend<T>(graph, {q, 0}, {kv, 0}, {kv, width_}, queries, keys, options_, point));
  }

  /// x [N, D] -> query, key and value side by side, [N, 3D].
  template <class T>
  Variable<T> project_all(Graph<T>& graph, const Variable<T>& x) const {
    return linear(graph, x, graph.parameter(query_weight_, {3 * width_, width_}),
                  graph.parameter(query_bias_, {3 * width_}));
  }
  /// x [N, D] -> [N, D].
  template <class T>
  Variable<T> project_query(Graph<T>& graph, const Variable<T>& x) const {
    return linear(graph, x, graph.parameter(query_weight_), graph.parameter(query_bias_));
  }
  /// memory [S, D] -> key and value side by side, [S, 2D].
  template <class T>
  Variable<T> project_memory(Graph<T>& graph, const Variable<T>& memory) const {
    return linear(graph, memory, graph.parameter(key_weight_, {2 * width_, width_}),
                  graph.parameter(key_bias_, {2 * width_}));
  }
  /// The heads' concatenated results [N, D] -> [N, D].
  template <class T>
  Variable<T> output(Graph<T>& graph, const Variable<T>& x) const {
    return linear(graph, x, graph.parameter(output_weight_), graph.parameter(output_bias_));
  }

  int heads() const { return options_.heads; }
  std::int64_t width() const { return width_; }

 private:
  template <class T>
  Variable<T> attend(Graph<T>& graph, const HeadsInput<T>& query, const HeadsInput<T>& key, const HeadsInput<T>& value,
                     PackedOffsets queries, PackedOffsets keys, const AttentionOptions& options,
                     const TracePoint& point) const {
    if constexpr (std::is_same_v<T, float>) {
      if (point.trace) {
        const Tensor<float> weights =
            graph.arena().template tensor<float>({attention_weights_size(queries, keys, options.heads)});
        const Variable<T> out = attention(graph, query, key, value, width_, queries, keys, options, weights.data());
        point.trace->attention(point.kind, point.layer, options.heads, queries, keys, weights.data());
        return out;
      }
    }
    return attention(graph, query, key, value, width_, queries, keys, options);
  }

  std::int64_t width_;
  AttentionOptions options_;
  ParameterId query_weight_, key_weight_, query_bias_, key_bias_, output_weight_, output_bias_;
};

}  // namespace heed
