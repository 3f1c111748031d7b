#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "heed/checkpoint/checkpoint.h"
#include "heed/decode/force.h"
#include "heed/decode/parallel_model.h"
#include "heed/decode/search.h"
#include "heed/decode/speculative_model.h"

namespace heed {

/// A model and its weights, in the form that decoding reads.
struct LoadedModel {
  const Model<float>& model;
  PackedParameters<float>& packed;
};

/// What a Translator reads.
struct TranslatorFiles {
  std::vector<std::string> models;  ///< checkpoints of one model, or of an ensemble
  std::string shortlist = {};       ///< a lexical shortlist: step models produce only what it allows for a source
  std::string draft = {};           ///< the checkpoint of a draft model for speculative_step_model()
};

/// One model or an ensemble that is ready for decoding. All threads read the same weights.
class Translator {
 public:
  /// Reads the files. Throws Error when a checkpoint cannot be read, or when the vocabularies or text steps of the
  /// checkpoints differ, and UsageError for a shortlist or a draft model of a model that reads images. `threads`
  /// threads pack the weights; a packed weight is held only in the form that `precision` needs. `gpu` is the number of
  /// the GPU that is to compute, if any.
  Translator(const TranslatorFiles& files, Precision precision, int threads = 1, std::optional<int> gpu = {});

  const TextModel& source() const { return models_.front()->file.checkpoint.source; }
  const TextModel& target() const { return models_.front()->file.checkpoint.target; }
  std::size_t models() const { return models_.size(); }
  const Checkpoint& checkpoint(std::size_t i) const { return models_[i]->file.checkpoint; }
  Precision precision() const { return precision_; }
  /// Returns the number of the GPU that computes, if any.
  std::optional<int> gpu() const { return gpu_; }
  /// Returns the lexical shortlist; null when none was given.
  const Shortlist* shortlist() const { return shortlist_.get(); }

  /// Returns the greatest number of tokens in a sequence (with `</s>` or `<s>`) that all models accept. Only models
  /// with learned positions have such a limit.
  std::optional<int> longest_sequence() const;

  LoadedModel loaded_model(std::size_t i) { return {*models_[i]->file.checkpoint.model, *models_[i]->packed}; }

  /// Returns whether the models predict all positions of a target at once.
  bool is_parallel() const { return checkpoint(0).model->is_parallel(); }
  /// Returns whether the models give their sources labels.
  bool classifies() const { return is_classifier(checkpoint(0).model->config()); }
  /// Returns how the models read images; null if they read text. An ensemble's models read images alike.
  const ImageInput* image_input() const { return heed::image_input(checkpoint(0).model->config()); }
  /// Returns a step model for one thread, which must not outlive the Translator. Not for models with is_parallel().
  std::unique_ptr<StepModel> step_model();
  /// Returns a model for one thread that predicts all positions at once, which must not outlive the Translator. Only
  /// for models with is_parallel().
  std::unique_ptr<ParallelModel> parallel_model();
  /// Returns a step model of the first model for one thread, whose draft model proposes at most `length` tokens in a
  /// step. The step model must not outlive the Translator, which must have a draft model.
  std::unique_ptr<SpeculativeStepModel> speculative_step_model(int length);

  /// Returns log p of the target tokens, [sentence][token], where p is the mean of the models' probabilities. Several
  /// threads may call this function and the next one at once.
  std::vector<std::vector<float>> target_log_probabilities(const Batch& batch);
  /// Returns for each sentence the cross-attention weights of the first model's last layer, averaged over heads: [T, S]
  /// in row-major order, with `</s>` on both sides.
  std::vector<std::vector<float>> attention(const Batch& batch);

 private:
  /// A checkpoint and its packed weights. The object must not move, because the packed weights and step models refer to
  /// the parameters in the checkpoint.
  struct Loaded {
    UnreadCheckpoint file;
    std::shared_ptr<PackedParameters<float>> packed = nullptr;
    std::vector<std::unique_ptr<ForcedDecoder>> idle = {};  // decoders that no thread uses at the moment
  };

  void check_files_of_images(const TranslatorFiles& files) const;
  void check_kind(const std::string& path, const Model<float>& model) const;
  void pack(Loaded& model, ThreadTeam& team);
  void upload(Loaded& model, ThreadTeam& team) const;
  template <class Use>
  std::vector<std::vector<float>> with_forced_decoder(Loaded& model, Use use);
  std::unique_ptr<NetworkStepModel> step_model(Loaded& model);
  std::unique_ptr<NetworkParallelModel> parallel_model(Loaded& model);

  std::vector<std::unique_ptr<Loaded>> models_;
  std::unique_ptr<Loaded> draft_;
  std::shared_ptr<const Shortlist> shortlist_;
  Precision precision_;
  std::optional<int> gpu_;
  std::mutex mutex_;  // of Loaded::idle
};

}  // namespace heed
