#include "heed/ops/attention.h"

#include <algorithm>

#include "heed/ops/attention_arguments.h"

namespace heed {

std::int64_t attention_weights_size(PackedOffsets queries, PackedOffsets keys, int heads) {
  return attention_weights_offset(queries, keys, heads, queries.sequences(), 0);
}

std::int64_t attention_weights_offset(PackedOffsets queries, PackedOffsets keys, int heads, int sequence, int head) {
  std::int64_t pairs = 0;
  for (int b = 0; b < sequence; ++b) pairs += std::int64_t{queries.length(b)} * keys.length(b);
  pairs *= heads;
  return head == 0 ? pairs : pairs + std::int64_t{head} * queries.length(sequence) * keys.length(sequence);
}

template <class T>
Variable<T> attention(Graph<T>& graph, HeadsInput<T> query, HeadsInput<T> key, HeadsInput<T> value, std::int64_t width,
                      PackedOffsets queries, PackedOffsets keys, const AttentionOptions& options, T* weights_out) {
  check_attention_arguments("attention", query, key, value, width, queries, keys, options);
  const std::int64_t size = attention_weights_size(queries, keys, options.heads);
  const AttentionArrays<T> arrays = attention_arrays(query, key, value, width, queries, keys, options,
                                                     draw_dropout_mask(graph, size + kAttentionSlack, options.dropout));
  const Variable<T> out = graph.result({queries.tokens(), width});
  T* weights = nullptr;
  if (graph.recording() || weights_out) weights = graph.arena().template tensor<T>({size + kAttentionSlack}).data();
  attention_forward(graph.device(), arrays, weights, out.value.data());
  if (weights_out) std::copy(weights, weights + size, weights_out);
  graph.record([&device = graph.device(), query, key, value, arrays, weights, out] {
    AttentionArrays<T> back = arrays;
    set_attention_gradients(query, key, value, back);
    attention_backward(device, back, weights, static_cast<const T*>(out.gradient.sum().data()));
  });
  return out;
}

template Variable<float> attention(Graph<float>&, HeadsInput<float>, HeadsInput<float>, HeadsInput<float>, std::int64_t,
                                   PackedOffsets, PackedOffsets, const AttentionOptions&, float*);
template Variable<double> attention(Graph<double>&, HeadsInput<double>, HeadsInput<double>, HeadsInput<double>,
                                    std::int64_t, PackedOffsets, PackedOffsets, const AttentionOptions&, double*);

}  // namespace heed
