#pragma once

#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/threads.h"
#include "heed/data/encode_corpus.h"
#include "heed/run/train.h"
#include "heed/train/resume.h"
#include "heed/train/trainer.h"

namespace heed {

/// All objects that `train` works with, made from the options: text models, corpora, model, threads.
class TrainSession {
 public:
  /// Reads the vocabularies and the texts. Throws the same errors as run_train(). `ranks` are the processes that train
  /// together; the functions below are collective.
  TrainSession(const TrainOptions& options, std::istream& in, Log& log, Communicator& ranks);

  /// Continues the training in the model file if the file exists; otherwise calls start(). Throws Error when the file
  /// holds a different training.
  void resume_or_start();
  /// Starts a new training with initial parameters, even if the model file exists.
  void start();
  /// Returns the trainer. Call resume_or_start() or start() first.
  Trainer make_trainer(Reporter& reporter);

  const TrainOptions& options() const { return options_; }
  Log& log() { return log_; }
  const Model<float>& model() const { return *run_->checkpoint.model; }
  ResumableCheckpoint& run() { return *run_; }
  const ParallelCorpus& corpus() const { return corpus_; }
  const ParallelCorpus& valid_corpus() const { return valid_corpus_; }
  const CorpusReport& report() const { return report_; }
  /// Returns the optimiser's settings. Call resume_or_start() or start() first; the same applies to the next three
  /// functions.
  const OptimizerSettings& optimizer() const { return optimizer_; }
  /// Returns the number of batches in an epoch.
  std::int64_t epoch_batches() const { return epoch_batches_; }
  /// Returns the number of updates in an epoch.
  std::int64_t epoch_updates() const;
  /// Returns about how many updates the whole training has, until --after.
  double planned_updates() const { return planned_updates_; }
  Validator* validator() { return validator_ ? &*validator_ : nullptr; }
  Precision precision() const { return precision_; }
  int threads() const { return pool_.size(); }
  Communicator& ranks() const { return ranks_; }
  /// Describes what must be the same on all ranks, one thing on each line.
  std::string identity() const;
  ThreadPool& pool() { return pool_; }
  bool one_vocabulary() const { return options_.vocabularies.size() == 1; }
  /// Returns the number of bytes of parameters, gradients, moments, activations (the largest so far) and text.
  std::int64_t memory() const;

 private:
  Checkpoint new_checkpoint() const;
  std::vector<RunSetting> settings() const;
  void plan();
  void take_rates_from(TrainingState& state);
  void set_rates();
  void read_validation(std::istream& in);

  const TrainOptions& options_;
  Log& log_;
  Communicator& ranks_;
  ThreadPool pool_;
  TextModel source_, target_;
  ModelConfig config_;
  // The user's options; when the length of the training is known, with the default warm-up and peak of the learning
  // rate.
  OptimizerOptions optimizer_options_;
  OptimizerSettings optimizer_;
  std::int64_t epoch_batches_ = 0;
  double planned_updates_ = 0;
  Precision precision_;
  CorpusReport report_;
  ParallelCorpus corpus_, valid_corpus_;
  std::vector<std::string> valid_lines_;
  std::optional<ResumableCheckpoint> run_;
  std::unique_ptr<GradientWorkers> workers_;
  std::optional<Validator> validator_;
};

}  // namespace heed
