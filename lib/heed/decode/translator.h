#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/checkpoint/checkpoint.h"
#include "heed/decode/search.h"

namespace heed {

/// A model and its weights, in the form that decoding reads.
struct LoadedModel {
  const Transformer<float>& model;
  ParameterValues<float>& parameters;
  PackedParameters<float>& packed;
};

/// One model or an ensemble that is ready for decoding. All threads read the same weights.
class Translator {
 public:
  /// Reads the checkpoints in `paths`. Throws Error when a checkpoint cannot be read, or when the vocabularies or text
  /// steps of the checkpoints differ. `threads` threads pack the weights; a packed weight is held only in the form that
  /// `precision` needs. When `shortlist` is the path of a lexical shortlist, step models produce only the pieces that
  /// the shortlist allows for a source.
  Translator(const std::vector<std::string>& paths, Precision precision, int threads = 1,
             const std::string& shortlist = {});

  const TextModel& source() const { return checkpoints_.front().checkpoint.source; }
  const TextModel& target() const { return checkpoints_.front().checkpoint.target; }
  std::size_t models() const { return checkpoints_.size(); }
  const Checkpoint& checkpoint(std::size_t i) const { return checkpoints_[i].checkpoint; }
  Precision precision() const { return precision_; }
  /// Returns the lexical shortlist; null when none was given.
  const Shortlist* shortlist() const { return shortlist_.get(); }

  /// Returns the greatest number of tokens in a sequence (with `</s>` or `<s>`) that all models accept. Only models
  /// with learned positions have such a limit.
  std::optional<int> longest_sequence() const;

  LoadedModel loaded_model(std::size_t i) {
    Checkpoint& one = checkpoints_[i].checkpoint;
    return {*one.model, one.parameters, *packed_[i]};
  }

  /// Returns a step model for one thread, which must not outlive the Translator.
  std::unique_ptr<StepModel> step_model();

  /// Returns log p of the target tokens, [sentence][token], where p is the mean of the models' probabilities.
  std::vector<std::vector<float>> force(const Batch& batch);
  /// Returns for each sentence the cross-attention weights of the first model's last layer, averaged over heads: [T, S]
  /// in row-major order, with `</s>` on both sides.
  std::vector<std::vector<float>> attention(const Batch& batch);

 private:
  void pack(std::size_t i, ThreadTeam& team);

  std::vector<UnreadCheckpoint> checkpoints_;
  // The packed weights of each checkpoint in checkpoints_.
  std::vector<std::shared_ptr<PackedParameters<float>>> packed_;
  std::shared_ptr<const Shortlist> shortlist_;
  Precision precision_;
};

}  // namespace heed
