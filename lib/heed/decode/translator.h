#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/checkpoint/checkpoint.h"
#include "heed/decode/search.h"

namespace heed {

/// A model with its weights, as decoding uses them.
struct LoadedModel {
  const Transformer<float>& model;
  ParameterValues<float>& parameters;
  PackedParameters<float>& packed;
};

/// One model or an ensemble, ready to decode on any number of threads over the same weights.
class Translator {
 public:
  /// Reads the checkpoints; throws Error where one cannot be read or where their vocabularies or text steps differ.
  /// Weights are kept in the form that the precision wants alone, which `threads` threads bring them into. With the
  /// path of a shortlist, step models produce what it allows for a source.
  Translator(const std::vector<std::string>& paths, Precision precision, int threads = 1,
             const std::string& shortlist = {});

  const TextModel& source() const { return checkpoints_.front().checkpoint.source; }
  const TextModel& target() const { return checkpoints_.front().checkpoint.target; }
  std::size_t models() const { return checkpoints_.size(); }
  const Checkpoint& checkpoint(std::size_t i) const { return checkpoints_[i].checkpoint; }
  Precision precision() const { return precision_; }
  /// Null where there is none.
  const Shortlist* shortlist() const { return shortlist_.get(); }

  /// The most tokens (</s> or <s> included) of a sequence that all models take: learned positions end somewhere.
  std::optional<int> longest_sequence() const;

  LoadedModel loaded_model(std::size_t i) {
    Checkpoint& one = checkpoints_[i].checkpoint;
    return {*one.model, one.parameters, *packed_[i]};
  }

  /// For one thread; must not outlive the translator.
  std::unique_ptr<StepModel> step_model();

  /// log p of the target's tokens under the mean of the models' probabilities, [sentence][token].
  std::vector<std::vector<float>> force(const Batch& batch);
  /// For each sentence the first model's last cross-attention, mean over heads: [T, S] row-major with
  /// </s> on both sides.
  std::vector<std::vector<float>> attention(const Batch& batch);

 private:
  void pack(std::size_t i, ThreadTeam& team);

  std::vector<UnreadCheckpoint> checkpoints_;
  std::vector<std::shared_ptr<PackedParameters<float>>> packed_;  // of each checkpoint
  std::shared_ptr<const Shortlist> shortlist_;
  Precision precision_;
};

}  // namespace heed
