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

/// Everything `train` works with, read and made from the options: text models, corpora, model, threads.
class TrainSession {
 public:
  /// Reads vocabularies and text. Throws as run_train does.
  TrainSession(const TrainOptions& options, std::istream& in, Log& log);

  /// Takes up the training in the model file where there is one, else starts anew. Throws Error where the file is of
  /// another training.
  void resume_or_start();
  /// Starts anew whatever files there are.
  void start();
  /// To be called after one of the two.
  Trainer make_trainer(Reporter& reporter);

  const TrainOptions& options() const { return options_; }
  Log& log() { return log_; }
  const Transformer<float>& model() const { return *run_->checkpoint.model; }
  ResumableCheckpoint& run() { return *run_; }
  const ParallelCorpus& corpus() const { return corpus_; }
  const CorpusReport& report() const { return report_; }
  /// To be called after resume_or_start() or start(), as the next two.
  const OptimizerSettings& optimizer() const { return optimizer_; }
  /// Batches and updates of an epoch, and about how many updates the whole training has by --after.
  std::int64_t epoch_batches() const { return epoch_batches_; }
  std::int64_t epoch_updates() const;
  double planned_updates() const { return planned_updates_; }
  Validator* validator() { return validator_ ? &*validator_ : nullptr; }
  Precision precision() const { return precision_; }
  int threads() const { return pool_.size(); }
  ThreadPool& pool() { return pool_; }
  bool one_vocabulary() const { return options_.vocabularies.size() == 1; }
  /// Bytes of parameters, gradients, moments, activations (as large as they have become) and text.
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
  ThreadPool pool_;
  TextModel source_, target_;
  TransformerConfig config_;
  OptimizerOptions optimizer_options_;  // with the default rates, once they are known
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
