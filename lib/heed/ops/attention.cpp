#include "heed/ops/attention.h"

#include <algorithm>

#include "heed/ops/attention_arguments.h"

namespace heed {
namespace {

/// Throws Error unless each sequence has as many keys as queries: positions are those of one sequence.
void check_lengths(PackedOffsets queries, PackedOffsets keys) {
  for (int b = 0; b < queries.sequences(); ++b)
    if (queries.length(b) != keys.length(b))
      throw Error("internal: attention: positions, but sequence " + std::to_string(b) + " has " +
                  std::to_string(queries.length(b)) + " queries and " + std::to_string(keys.length(b)) + " keys");
}

/// Throws Error unless each sequence has the number of tokens of its window.
void check_windows(PackedOffsets packed, const PackedWindows& windows) {
  if (std::ssize(windows.shape_of) != packed.sequences())
    throw Error("internal: attention: " + std::to_string(windows.shape_of.size()) + " windows, but " +
                std::to_string(packed.sequences()) + " sequences");
  for (int b = 0; b < packed.sequences(); ++b) {
    const std::int32_t shape = windows.shape_of[static_cast<std::size_t>(b)];
    if (shape < 0 || shape >= std::ssize(windows.shapes))
      throw Error("internal: attention: sequence " + std::to_string(b) + " has shape number " + std::to_string(shape) +
                  " of " + std::to_string(windows.shapes.size()));
    if (windows.shape(b).tokens() != packed.length(b))
      throw Error("internal: attention: a window of " + std::to_string(windows.shape(b).tokens()) +
                  " tokens, but sequence " + std::to_string(b) + " has " + std::to_string(packed.length(b)));
  }
}

/// Sets the pointers of `arrays` to the gradients of a bias and of relative vectors.
template <class T>
void set_position_gradients(const PositionBias<T>& positions, PositionArrays<T>& arrays) {
  if (positions.bias) arrays.bias_gradient = positions.bias.gradient.sum().data();
  if (!positions.relative_keys) return;
  arrays.relative_keys_gradient = positions.relative_keys.gradient.sum().data();
  arrays.relative_values_gradient = positions.relative_values.gradient.sum().data();
}

}  // namespace

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
                      PackedOffsets queries, PackedOffsets keys, const AttentionOptions& options,
                      const Variable<T>& weights, const PositionBias<T>& positions) {
  check_attention_arguments("attention", query, key, value, width, queries, keys, options);
  if (positions) check_lengths(queries, keys);
  if (!positions.matrices.empty()) check_windows(queries, positions.windows);
  AttentionArrays<T> arrays =
      attention_arrays(query, key, value, width, queries, keys, options,
                       attention_dropout_mask(graph, queries, keys, options, !positions.matrices.empty()));
  if (positions)
    arrays.positions =
        position_arrays("attention", positions, options.heads, width / options.heads, keys.longest(), options.causal);
  arrays.weights = weights.value.data();
  const Shape shape{queries.tokens(), width};
  const bool rounds = graph.run([&](auto& device) { return rounds_attention(device, arrays); });
  const Variable<T> out =
      rounds && stores_rounded(graph, options.use) ? graph.rounded_result(shape) : graph.result(shape);
  T* const kept = graph.run([&](auto& device) { return attention_kept(device, arrays, graph.recording()); });
  graph.run([&](auto& device) { attention_forward(device, arrays, kept, value_of(out)); });
  graph.record([query, key, value, weights, positions, arrays, kept, out](auto& device) {
    AttentionArrays<T> back = arrays;
    back.weights_gradient = weights_gradient(weights);
    set_attention_gradients(query, key, value, attends_in_bfloat16(device, back), back);
    set_position_gradients(positions, back.positions);
    attention_backward(device, back, kept, value_of(out), arrived_gradient(out));
  });
  return out;
}

template <class T>
Variable<T> attention_weights(Graph<T>& graph, PackedOffsets queries, PackedOffsets keys, int heads) {
  return graph.result({attention_weights_size(queries, keys, heads) + kAttentionSlack});
}

template Variable<float> attention(Graph<float>&, HeadsInput<float>, HeadsInput<float>, HeadsInput<float>, std::int64_t,
                                   PackedOffsets, PackedOffsets, const AttentionOptions&, const Variable<float>&,
                                   const PositionBias<float>&);
template Variable<double> attention(Graph<double>&, HeadsInput<double>, HeadsInput<double>, HeadsInput<double>,
                                    std::int64_t, PackedOffsets, PackedOffsets, const AttentionOptions&,
                                    const Variable<double>&, const PositionBias<double>&);
template Variable<float> attention_weights(Graph<float>&, PackedOffsets, PackedOffsets, int);
template Variable<double> attention_weights(Graph<double>&, PackedOffsets, PackedOffsets, int);

}  // namespace heed
