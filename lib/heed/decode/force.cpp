#include "heed/decode/force.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "heed/decode/parallel_model.h"

namespace heed {
namespace {

/// Returns log p of each of `tokens`, whose hidden states are given, in the sequences `offsets`.
std::vector<std::vector<float>> token_scores(Graph<float>& graph, const Model<float>& model, Tensor<float> hidden,
                                             std::span<const std::int32_t> tokens, PackedOffsets offsets) {
  std::vector<float> flat(tokens.size());
  token_log_probabilities(graph.device().cpu(), hidden, model.output_weight(graph).value,
                          model.output_bias(graph).value, tokens, flat.data());
  std::vector<std::vector<float>> out;
  for (int b = 0; b < offsets.sequences(); ++b)
    out.emplace_back(flat.begin() + offsets.begin(b), flat.begin() + offsets.begin(b + 1));
  return out;
}

/// force_decode() of a model that predicts all positions at once.
std::vector<std::vector<float>> force_all_at_once(Graph<float>& graph, const Model<float>& model, const Batch& batch) {
  const std::unique_ptr<ParallelState<float>> state = model.make_parallel_state(graph.device());
  state->start(graph, batch.source);
  const PackedOffsets target = batch.target_in.packed();
  PackedIds masked = batch.target_in;
  std::ranges::fill(masked.ids, kStartId);
  if (!model.predicts_end())
    for (int b = 0; b < target.sequences(); ++b) masked.ids[static_cast<std::size_t>(target.begin(b + 1)) - 1] = kEndId;
  std::vector<std::int32_t> sentences(static_cast<std::size_t>(target.sequences()));
  std::iota(sentences.begin(), sentences.end(), 0);
  std::vector<std::vector<float>> out =
      token_scores(graph, model, state->predict(graph, masked, sentences).value, batch.target_out, target);
  if (model.predicts_end()) return out;
  const std::vector<std::vector<TargetLength>> lengths = state->lengths();
  for (std::size_t b = 0; b < out.size(); ++b) {
    const auto found = std::ranges::find(lengths[b], static_cast<int>(out[b].size()), &TargetLength::tokens);
    out[b].back() = found == lengths[b].end() ? -std::numeric_limits<float>::infinity() : found->log_probability;
  }
  return out;
}

}  // namespace

std::vector<std::vector<float>> force_decode(const Model<float>& model, ParameterValues<float>& parameters,
                                             Precision precision, const Batch& batch, PackedParameters<float>* packed) {
  Arena arena;
  CpuContext device{arena, precision};
  Graph<float> graph(device, parameters, packed);
  if (model.is_parallel()) return force_all_at_once(graph, model, batch);
  return token_scores(graph, model, model.hidden(graph, batch).value, batch.target_out, batch.target_in.packed());
}

void trace_attention(const Model<float>& model, ParameterValues<float>& parameters, Precision precision,
                     const Batch& batch, Trace<float>& trace, PackedParameters<float>* packed) {
  Arena arena;
  CpuContext device{arena, precision};
  Graph<float> graph(device, parameters, packed);
  model.hidden(graph, batch, &trace);
}

}  // namespace heed
