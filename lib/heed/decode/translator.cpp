#include "heed/decode/translator.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/thread_team.h"
#include "heed/decode/force.h"

namespace heed {
namespace {

/// Keeps the cross-attention weights of the last layer, averaged over heads.
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

Translator::Translator(const std::vector<std::string>& paths, Precision precision, int threads,
                       const std::string& shortlist)
    : precision_(precision) {
  // A wrong value of the environment variable HEED_ISA is reported by this call, before any model is read.
  static_cast<void>(instruction_set());
  // Space is reserved, because step models refer to the parameters in checkpoints_, which must not move.
  checkpoints_.reserve(paths.size());
  ThreadTeam team(std::min(threads, ThreadTeam::kMostUseful));
  for (const std::string& path : paths) {
    checkpoints_.push_back(open_unread_checkpoint(path));
    if (checkpoints_.size() > 1) {
      const Checkpoint& last = checkpoints_.back().checkpoint;
      check_same_text(paths.front(), path, "source", source(), last.source);
      check_same_text(paths.front(), path, "target", target(), last.target);
    } else if (!shortlist.empty()) {
      shortlist_ =
          std::make_shared<Shortlist>(Shortlist::read(shortlist, source().vocabulary(), target().vocabulary()));
    }
    pack(checkpoints_.size() - 1, team);
  }
}

/// Packs the weights of checkpoint i while reading them from the file. For this purpose, one decoding step asks for
/// each weight of the layers and of the output layer (with a shortlist, not of the output layer). Then reads the
/// remaining parameters. A weight that is used only in packed form is never held unpacked as well.
void Translator::pack(std::size_t i, ThreadTeam& team) {
  auto& [checkpoint, reader] = checkpoints_[i];
  packed_.push_back(std::make_shared<PackedParameters<float>>(
      checkpoint.parameters, [&from = *reader](std::int64_t first, std::span<float> out) { from.read(first, out); }));
  TransformerStepModel model(*checkpoint.model, checkpoint.parameters, precision_, packed_.back(), shortlist_);
  model.share_with(&team);
  PackedIds source;
  source.append(std::vector<std::int32_t>{kEndId});
  model.start(source);
  Arena arena;
  CpuContext device{arena, precision_};
  float log_probability = 0;
  std::int32_t id = 0;
  model.step(std::vector<std::int32_t>{kStartId}, device, 1, &log_probability, &id);
  const auto is_layer = [](const std::string& name) {
    return name.starts_with("encoder/layers/") || name.starts_with("decoder/layers/");
  };
  packed_.back()->read_rest(
      checkpoint.parameters, [&](const std::string& name) { return !is_layer(name); }, team);
  reader->finish();
}

std::optional<int> Translator::longest_sequence() const {
  std::optional<int> longest;
  for (const UnreadCheckpoint& each : checkpoints_) {
    const TransformerConfig& config = each.checkpoint.model->config();
    if (config.positions == PositionEncoding::learned)
      longest = std::min(longest.value_or(config.max_positions), config.max_positions);
  }
  return longest;
}

std::unique_ptr<StepModel> Translator::step_model() {
  std::vector<std::unique_ptr<StepModel>> models;
  for (std::size_t i = 0; i < checkpoints_.size(); ++i) {
    Checkpoint& one = checkpoints_[i].checkpoint;
    models.push_back(
        std::make_unique<TransformerStepModel>(*one.model, one.parameters, precision_, packed_[i], shortlist_));
  }
  if (models.size() == 1) return std::move(models.front());
  return std::make_unique<EnsembleStepModel>(std::move(models));
}

std::vector<std::vector<float>> Translator::force(const Batch& batch) {
  std::vector<std::vector<float>> mean;
  const float share = 1 / static_cast<float>(checkpoints_.size());
  for (std::size_t i = 0; i < checkpoints_.size(); ++i) {
    Checkpoint& one = checkpoints_[i].checkpoint;
    auto scores = force_decode(*one.model, one.parameters, precision_, batch, nullptr, packed_[i].get());
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
  Checkpoint& first = checkpoints_.front().checkpoint;
  force_decode(*first.model, first.parameters, precision_, batch, &trace, packed_.front().get());
  return trace.take();
}

}  // namespace heed
