#include "heed/decode/translator.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"
#include "heed/decode/force.h"

namespace heed {
namespace {

/// Keeps the last layer's cross-attention, averaged over heads.
class LastCrossAttention : public Trace {
 public:
  void attention(AttentionKind kind, int, int heads, PackedOffsets queries, PackedOffsets keys,
                 const float* weights) override {
    if (kind != AttentionKind::cross) return;
    maps_.assign(static_cast<std::size_t>(queries.sequences()), {});
    for (int b = 0; b < queries.sequences(); ++b) {
      const auto size = static_cast<std::size_t>(queries.length(b)) * static_cast<std::size_t>(keys.length(b));
      auto& map = maps_[static_cast<std::size_t>(b)];
      map.assign(size, 0);
      for (int h = 0; h < heads; ++h, weights += size)
        for (std::size_t i = 0; i < size; ++i) map[i] += weights[i] / static_cast<float>(heads);
    }
  }

  std::vector<std::vector<float>> take() { return std::move(maps_); }

 private:
  std::vector<std::vector<float>> maps_;
};

void check_same_text(const std::string& first, const std::string& other, const char* side, const TextModel& a,
                     const TextModel& b) {
  const TextModelParts x = a.parts(), y = b.parts();
  if (x.pieces != y.pieces || x.subword_model != y.subword_model || x.attributes != y.attributes)
    throw Error(Position{other}, std::string("its ") + side + " vocabulary or text steps differ from those of " +
                                     first + " (an ensemble's models must be trained with the same vocabularies)");
}

}  // namespace

Translator::Translator(const std::vector<std::string>& paths, Precision precision) : precision_(precision) {
  for (const std::string& path : paths) {
    checkpoints_.push_back(load_checkpoint(path));
    packed_.push_back(std::make_shared<PackedParameters<float>>(checkpoints_.back().parameters.layout()));
    if (checkpoints_.size() == 1) continue;
    check_same_text(paths.front(), path, "source", source(), checkpoints_.back().source);
    check_same_text(paths.front(), path, "target", target(), checkpoints_.back().target);
  }
}

std::optional<int> Translator::longest_sequence() const {
  std::optional<int> longest;
  for (const Checkpoint& checkpoint : checkpoints_) {
    const TransformerConfig& config = checkpoint.model->config();
    if (config.positions == PositionEncoding::learned)
      longest = std::min(longest.value_or(config.max_positions), config.max_positions);
  }
  return longest;
}

std::unique_ptr<StepModel> Translator::step_model() {
  std::vector<std::unique_ptr<StepModel>> models;
  for (std::size_t i = 0; i < checkpoints_.size(); ++i)
    models.push_back(std::make_unique<TransformerStepModel>(*checkpoints_[i].model, checkpoints_[i].parameters,
                                                            precision_, packed_[i]));
  if (models.size() == 1) return std::move(models.front());
  return std::make_unique<EnsembleStepModel>(std::move(models));
}

std::vector<std::vector<float>> Translator::force(const Batch& batch) {
  std::vector<std::vector<float>> mean;
  const float share = 1 / static_cast<float>(checkpoints_.size());
  for (std::size_t i = 0; i < checkpoints_.size(); ++i) {
    auto scores =
        force_decode(*checkpoints_[i].model, checkpoints_[i].parameters, precision_, batch, nullptr, packed_[i].get());
    if (checkpoints_.size() == 1) return scores;
    if (mean.empty()) {
      mean = scores;
      for (auto& sentence : mean) std::fill(sentence.begin(), sentence.end(), 0.0F);
    }
    for (std::size_t s = 0; s < mean.size(); ++s)
      for (std::size_t t = 0; t < mean[s].size(); ++t) mean[s][t] += share * std::exp(scores[s][t]);
  }
  for (auto& sentence : mean)
    for (float& p : sentence) p = std::log(p);
  return mean;
}

std::vector<std::vector<float>> Translator::attention(const Batch& batch) {
  LastCrossAttention trace;
  Checkpoint& first = checkpoints_.front();
  force_decode(*first.model, first.parameters, precision_, batch, &trace, packed_.front().get());
  return trace.take();
}

}  // namespace heed
