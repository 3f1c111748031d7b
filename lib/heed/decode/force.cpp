#include "heed/decode/force.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "heed/ops/cross_entropy.h"
#include "heed/ops/parts.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

/// Hands the attention weights of a device to another trace, in the memory of the host.
class DownloadedTrace : public Trace<float> {
 public:
  DownloadedTrace(Device device, Trace<float>& to) : device_(device), to_(to) {}

  bool wants(AttentionKind kind, int layer) const override { return to_.wants(kind, layer); }
  void attention(AttentionKind kind, int layer, int heads, PackedOffsets queries, PackedOffsets keys,
                 const Variable<float>& weights) override {
    to_.attention(kind, layer, heads, queries, keys, {device_.download(weights.value), {}});
  }

 private:
  Device device_;
  Trace<float>& to_;
};

}  // namespace

ForcedDecoder::ForcedDecoder(const Model<float>& model, ParameterValues<float>& parameters, Precision precision,
                             std::shared_ptr<PackedParameters<float>> packed)
    : model_(model),
      packed_(packed ? std::move(packed) : std::make_shared<PackedParameters<float>>(parameters)),
      device_(packed_->gpu(), precision),
      graph_(device_, packed_->view(), packed_.get()) {}

/// Begins a new computation.
void ForcedDecoder::begin() {
  graph_.device().begin();
  graph_.reset();
}

/// Returns log p of each of `tokens`, whose hidden states are given, in the sequences `offsets`.
std::vector<std::vector<float>> ForcedDecoder::token_scores(Tensor<float> hidden, std::span<const std::int32_t> tokens,
                                                            PackedOffsets offsets) {
  const Tensor<float> out = graph_.arena().tensor<float>({std::ssize(tokens)});
  graph_.run([&](auto& device) {
    token_log_probabilities(device, hidden, model_.output_weight(graph_).value, model_.output_bias(graph_).value,
                            tokens, out.data());
  });
  const std::span<const float> flat = graph_.device().download(out).span();
  std::vector<std::vector<float>> sentences;
  for (int b = 0; b < offsets.sequences(); ++b)
    sentences.emplace_back(flat.begin() + offsets.begin(b), flat.begin() + offsets.begin(b + 1));
  return sentences;
}

/// scores() of a model that predicts all positions at once.
std::vector<std::vector<float>> ForcedDecoder::scores_at_once(const Batch& batch) {
  const std::unique_ptr<ParallelState<float>> state = model_.make_parallel_state(device_);
  state->start(graph_, batch.source);
  const std::vector<std::vector<TargetLength>> lengths = state->lengths();
  const PackedOffsets target = batch.target_in.packed();
  std::vector<std::int32_t> sentences(static_cast<std::size_t>(target.sequences())), rows;
  std::iota(sentences.begin(), sentences.end(), 0);
  // The targets as the model begins to predict them, and the tokens for which they have a place.
  PackedIds masked, tokens;
  for (int b = 0; b < target.sequences(); ++b) {
    const int own = target.length(b), places = model_.predicts_end() ? lengths[b].front().tokens : own;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(places), kStartId);
    if (!model_.predicts_end()) ids.back() = kEndId;
    const int scored = std::min(own, places);
    for (int t = 0; t < scored; ++t) rows.push_back(masked.tokens() + t);
    masked.append(ids);
    tokens.append(std::span(batch.target_out)
                      .subspan(static_cast<std::size_t>(target.begin(b)), static_cast<std::size_t>(scored)));
  }
  const Variable<float> hidden = gather_rows<float>(graph_, state->predict(graph_, masked, sentences), rows);
  std::vector<std::vector<float>> out = token_scores(hidden.value, tokens.ids, tokens.packed());
  constexpr float kImpossible = -std::numeric_limits<float>::infinity();
  for (std::size_t b = 0; b < out.size(); ++b) {
    const auto own = static_cast<std::size_t>(target.length(static_cast<int>(b)));
    if (model_.predicts_end()) {
      out[b].resize(own, kImpossible);
      continue;
    }
    const auto found = std::ranges::find(lengths[b], static_cast<int>(own), &TargetLength::tokens);
    out[b].back() = found == lengths[b].end() ? kImpossible : found->log_probability;
  }
  return out;
}

std::vector<std::vector<float>> ForcedDecoder::scores(const Batch& batch) {
  begin();
  if (model_.is_parallel()) return scores_at_once(batch);
  return token_scores(model_.hidden(graph_, batch).value, batch.target_out, batch.target_in.packed());
}

void ForcedDecoder::attention(const Batch& batch, Trace<float>& trace) {
  begin();
  DownloadedTrace downloaded(graph_.device(), trace);
  model_.hidden(graph_, batch, &downloaded);
}

}  // namespace heed
