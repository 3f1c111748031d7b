#include "heed/ops/additive_attention.h"

#include <algorithm>

#include "heed/ops/attention_arguments.h"

namespace heed {

template <class T>
Variable<T> additive_attention(Graph<T>& graph, HeadsInput<T> query, HeadsInput<T> key, HeadsInput<T> value,
                               const Variable<T>& scorer, std::int64_t width, PackedOffsets queries, PackedOffsets keys,
                               const AttentionOptions& options, const Variable<T>& weights) {
  check_attention_arguments("additive_attention", query, key, value, width, queries, keys, options);
  check_shape("additive_attention", "scorer", scorer.shape(), {width});
  for (const HeadsInput<T>* input : {&query, &key, &value})
    if (input->matrix.is_rounded()) throw Error("internal: additive_attention: an operand is stored as bfloat16");
  const std::int64_t size = attention_weights_size(queries, keys, options.heads);
  const AdditiveAttentionArrays<T> arrays{
      .attention = attention_arrays(query, key, value, width, queries, keys, options,
                                    attention_dropout_mask(graph, queries, keys, options)),
      .scorer = scorer.value.data(),
      .scorer_gradient = nullptr};
  const Variable<T> out = graph.result({queries.tokens(), width});
  T* const kept = kept_weights(graph, weights, size);
  graph.run([&](auto& device) { additive_attention_forward(device, arrays, kept, out.value.data()); });
  graph.record([query, key, value, scorer, weights, arrays, kept, out](auto& device) {
    AdditiveAttentionArrays<T> back = arrays;
    set_attention_gradients(query, key, value, false, back.attention);
    back.attention.weights_gradient = weights_gradient(weights);
    back.scorer_gradient = scorer.gradient.sum().data();
    additive_attention_backward(device, back, kept, static_cast<const T*>(out.gradient.sum().data()));
  });
  return out;
}

template Variable<float> additive_attention(Graph<float>&, HeadsInput<float>, HeadsInput<float>, HeadsInput<float>,
                                            const Variable<float>&, std::int64_t, PackedOffsets, PackedOffsets,
                                            const AttentionOptions&, const Variable<float>&);
template Variable<double> additive_attention(Graph<double>&, HeadsInput<double>, HeadsInput<double>, HeadsInput<double>,
                                             const Variable<double>&, std::int64_t, PackedOffsets, PackedOffsets,
                                             const AttentionOptions&, const Variable<double>&);

}  // namespace heed
