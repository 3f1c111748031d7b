#pragma once

#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/signals.h"
#include "heed/base/threads.h"
#include "heed/cost/training_cost.h"
#include "heed/run/train.h"
#include "heed/run/training_text.h"
#include "heed/tensor/cuda_device.h"
#include "heed/train/gpu_sum.h"
#include "heed/train/resume.h"
#include "heed/train/teachers.h"
#include "heed/train/trainer.h"

namespace heed {

/// Reads the vocabularies that the options name. Each is read once, because it may be a pipe.
std::vector<TextModel> read_vocabularies(const TrainOptions& options);

/// All objects that `train` works with, made from the options: texts, model, threads.
class TrainSession {
 public:
  /// Reads the trainings of --plot-with, and opens the training text. Throws the same errors as run_train().
  /// `vocabularies` is what read_vocabularies() returned. `ranks` are the processes that train together. `gpu` is the
  /// number of the GPU on which this rank computes its updates, if any. `interrupts` are those of TrainingText.
  TrainSession(const TrainOptions& options, const std::vector<TextModel>& vocabularies, std::istream& in, Log& log,
               Communicator& ranks, std::optional<int> gpu, const InterruptGuard* interrupts);

  /// Returns the texts. Read them before everything else.
  TrainingText& text() { return text_; }
  /// Opens the GPU, if there is one.
  void open_gpu();
  /// Loads the training in the model file if `resumes` and the file exists; otherwise makes a new one with initial
  /// parameters. Also predicts the speed where the length of the training depends on it. Call open_gpu() first.
  void load(bool resumes);
  /// Copies the speed that rank 0 has predicted to all ranks, so that all ranks plan the same training. Collective,
  /// like make_trainer(). Call load() first.
  void agree_on_speed();
  /// Plans the loaded or new training. Throws Error when the model file holds a different training.
  void plan();
  /// Prepares the GPUs of all ranks to add their gradients up. Collective; call open_gpu() first.
  void connect_gpus();
  /// Returns the trainer. Call plan() and connect_gpus() first.
  Trainer make_trainer(Reporter& reporter);
  /// Takes the settings that differ from those of the saved training. If the training goes on, warns that its result
  /// will differ. A training that is `finished` keeps the saved settings, with which it was trained. Call plan() first.
  void take_changes(bool finished);

  const TrainOptions& options() const { return options_; }
  Log& log() { return log_; }
  const Model<float>& model() const { return *run_->checkpoint.model; }
  ResumableCheckpoint& run() { return *run_; }
  /// Returns the optimiser's settings. Call plan() first.
  const OptimizerSettings& optimizer() const { return optimizer_; }
  /// Returns the number of batches in an epoch, which is an estimate with --shuffle-window. Call plan() first.
  std::int64_t epoch_batches() const { return epoch_batches_; }
  /// Returns the number of target tokens in an epoch, which is the number of images for a model that classifies.
  std::int64_t epoch_tokens() const;
  /// Returns the number of updates in an epoch, which is an estimate with --shuffle-window. Call plan() first.
  std::int64_t epoch_updates() const { return epoch_updates_; }
  /// Returns about how many updates the whole training has, until --after. Call plan() first.
  double planned_updates() const { return planned_updates_; }
  Validator* validator() { return validator_ ? &*validator_ : nullptr; }
  Precision precision() const { return precision_; }
  int threads() const { return pool_.size(); }
  std::optional<int> gpu() const { return gpu_number_; }
  /// Returns the name of the method that adds up the gradients of several GPUs (GpuSum::name()), or an empty text for a
  /// single GPU or for CPUs.
  std::string gradient_sum() const;
  Communicator& ranks() const { return ranks_; }
  /// Returns a description of what all ranks must have in common, one item on each line: the texts, the vocabularies,
  /// the settings, the number of updates that are done, and what was read from model files. Call plan() first.
  std::string identity() const;
  ThreadPool& pool() { return pool_; }
  bool one_vocabulary() const { return options_.vocabularies.size() == 1 && !reads_images(); }
  /// Returns whether the targets are labels.
  bool classifies() const { return is_classifier(text_.config()); }
  bool reads_images() const { return image_input(text_.config()) != nullptr; }
  /// Returns the training on this rank, whose cost can be predicted. Call load() first.
  TrainingWork work(const OptimizerSettings& optimizer);
  /// Returns the number of bytes of parameters, gradients, moments, activations (the largest so far) and text.
  std::int64_t memory() const;

 private:
  Checkpoint new_checkpoint() const;
  std::vector<RunSetting> settings() const;
  const std::string* stored_setting(const std::string& name) const;
  std::string pretrained_model() const;
  void warn_of_unread_model();
  void forget_other_validations();
  std::unique_ptr<TrainingWorkers> make_workers(const Model<float>& model);
  void make_loss();
  void plan_epoch();
  void take_rates_from(TrainingState& state);
  void set_rates();

  const TrainOptions& options_;
  Log& log_;
  Communicator& ranks_;
  std::vector<std::pair<std::string, TrainingState>> compared_;  // of --plot-with, by the model files
  ThreadPool pool_;
  std::optional<int> gpu_number_;  // of the GPU that computes the updates
  Precision precision_;
  TrainingText text_;
  // The user's options; when the length of the training is known, with the default warm-up and peak of the learning
  // rate.
  OptimizerOptions optimizer_options_;
  OptimizerSettings optimizer_;
  std::int64_t epoch_batches_ = 0, epoch_updates_ = 0;
  double planned_updates_ = 0;
  // The predicted speed in target tokens a second, where --after is in hours.
  double speed_ = 0;
  bool resumed_ = false;
  std::optional<ResumableCheckpoint> run_;
  // The settings of the saved training, and what check_resumable() says of those that have changed.
  std::vector<std::pair<std::string, std::string>> saved_settings_;
  std::vector<std::string> changes_;
#if HEED_HAS_CUDA
  std::unique_ptr<CudaDevice> gpu_;
  std::unique_ptr<GpuSum> gpu_sum_;  // of several ranks
#endif
  std::optional<Teachers> teachers_;
  BatchLoss loss_;
  std::unique_ptr<TrainingWorkers> workers_;
  std::optional<Validator> validator_;
};

}  // namespace heed
