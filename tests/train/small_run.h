#pragma once

#include <unistd.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "heed/model/transformer.h"
#include "heed/train/learning_curve.h"
#include "heed/train/model_files.h"
#include "heed/train/trainer.h"

namespace heed {

/// Examples that are all in memory.
class OneWindow final : public ExampleWindows {
 public:
  explicit OneWindow(const Examples& examples) : examples_(examples) {}
  std::int64_t windows() const override { return 1; }
  const Examples& load(std::int64_t, std::int64_t) override { return examples_; }

 private:
  const Examples& examples_;
};

/// Returns a text model whose vocabulary has the words a to h.
inline TextModel letters() {
  TextSteps steps;
  steps.mode = TokenMode::none;
  std::vector<std::string> pieces = {"<pad>", "<unk>", "<s>", "</s>"};
  for (char letter = 'a'; letter <= 'h'; ++letter) pieces.emplace_back(1, letter);
  return TextModel(steps, Subwords(), std::make_shared<const Vocabulary>(pieces));
}

/// Returns sentence pairs whose target is the source in reverse order.
inline ParallelCorpus mirrored(int pairs) {
  ParallelCorpus corpus;
  for (int i = 0; i < pairs; ++i) {
    std::vector<std::int32_t> source;
    for (int j = 0; j <= i % 6; ++j) source.push_back(4 + (i * (j + 3) + i / 7) % 8);
    corpus.add(source, std::vector<std::int32_t>(source.rbegin(), source.rend()), i + 1);
  }
  return corpus;
}

inline TransformerConfig small_config(double dropout = 0.1) {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = letters().size();
  config.dim_emb = 16;
  config.enc_depth = config.dec_depth = 1;
  config.heads = 2;
  config.dim_ffn = 32;
  config.dropout = dropout;
  return config;
}

struct TemporaryFolder {
  explicit TemporaryFolder(const std::string& name)
      : path(std::filesystem::temp_directory_path() / (name + "_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path)) out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }
  std::filesystem::path path;
};

/// Workers that compute each update when its result is collected, and to which several may be submitted, as to a GPU.
class LateWorkers final : public TrainingWorkers {
 public:
  LateWorkers(TrainingWorkers& workers, int most_submitted) : workers_(workers), most_submitted_(most_submitted) {}

  std::unique_ptr<UpdateStep> make_update_step(const UpdateArrays& arrays) override {
    return std::make_unique<Step>(workers_.make_update_step(arrays), most_submitted_);
  }
  LossSums evaluate(ParameterValues<float>& parameters, const Examples& examples, std::span<const Shard> shards,
                    const InterruptGuard* interrupts) override {
    return workers_.evaluate(parameters, examples, shards, interrupts);
  }
  Communicator& ranks() override { return workers_.ranks(); }
  std::int64_t memory() const override { return workers_.memory(); }

 private:
  class Step final : public UpdateStep {
   public:
    Step(std::unique_ptr<UpdateStep> step, int most_submitted)
        : step_(std::move(step)), most_submitted_(most_submitted) {}

    void submit(const Examples& examples, std::span<const Shard> shards, LossOptions loss, const DropoutKey& dropout,
                std::int64_t step, double learning_rate) override {
      REQUIRE(std::ssize(submitted_) < most_submitted_);
      std::vector<std::vector<std::int32_t>> lists;  // the examples of the shards, which change before they are read
      for (const Shard& shard : shards) lists.emplace_back(shard.examples.begin(), shard.examples.end());
      submitted_.push_back([=, this, &examples, own = std::vector(shards.begin(), shards.end())]() mutable {
        for (std::size_t i = 0; i < own.size(); ++i) own[i].examples = lists[i];
        return step_->run(examples, own, loss, dropout, step, learning_rate);
      });
    }
    Result collect() override {
      REQUIRE(!submitted_.empty());
      auto update = std::move(submitted_.front());
      submitted_.pop_front();
      const Result result = update();
      if (!result.applied) submitted_.clear();
      return result;
    }
    int most_submitted() const override { return most_submitted_; }
    void gather_parameters() override {
      REQUIRE(submitted_.empty());
      step_->gather_parameters();
    }
    void gather_memory() override {
      REQUIRE(submitted_.empty());
      step_->gather_memory();
    }
    void take_over() override {
      REQUIRE(submitted_.empty());
      step_->take_over();
    }

   private:
    std::unique_ptr<UpdateStep> step_;
    int most_submitted_;
    std::deque<std::function<Result()>> submitted_;
  };

  TrainingWorkers& workers_;
  int most_submitted_;
};

/// A complete training in memory, set up like the program `train`, of a model that learns to reverse sentences.
struct SmallRun {
  explicit SmallRun(std::string model_path, int threads = 2) : path(std::move(model_path)), pool(threads) {
    batch.mini_batch_words = 60;
    batch.precision = PrecisionChoice::float32;
    run.after = "3e";
    run.save_freq = "100e";
    run.valid_metrics = {Metric::perplexity};
    optimizer.lr_schedule = ScheduleKind::constant;
    optimizer.learn_rate = 0.01;
    optimizer.lr_warmup = 0;
  }

  /// Prepares the trainer, with the state in the model file if the file exists.
  Trainer& prepare(const BatchLoss& loss = {}) {
    if (std::filesystem::exists(path)) {
      state = load_resumable_checkpoint(path);
    } else {
      auto model = std::make_shared<const Transformer<float>>(config);
      ParameterValues<float> parameters(model->layout());
      state.emplace(ResumableCheckpoint{{model, std::move(parameters), letters(), letters()}, {}, {}});
      set_first_parameters(state->checkpoint, 1, pretrained_model);
      state->state.seed = 1;
    }
    restore_training_form(*state, batch.exponential_smoothing > 0);
    const Model<float>& model = *state->checkpoint.model;
    workers = std::make_unique<GradientWorkers>(model.layout(), loss ? loss : loss_of(model), precision, pool, *ranks);
    late_workers.emplace(*workers, std::max(most_submitted, 1));
    TrainingWorkers& used = most_submitted > 0 ? static_cast<TrainingWorkers&>(*late_workers) : *workers;
    validator.emplace(held_out, std::vector<std::string>{}, run.valid_metrics, *workers, TranslateCorpus());
    reporter.emplace(run.log_format, out, log);
    trainer.reset();
    trainer = std::make_unique<Trainer>(Trainer::Parts{path, *state, windows, used, &*validator, pool, *reporter, log,
                                                       pretrained_model, load_compared_trainings(run.plot_with)},
                                        batch, run, optimizer.resolve());
    return *trainer;
  }
  Trainer::Outcome go(const BatchLoss& loss = {}) {
    const InterruptGuard interrupts;
    return prepare(loss).run(interrupts);
  }
  std::vector<float> parameters() const {
    const auto flat = state->checkpoint.parameters.flat();
    return {flat.begin(), flat.end()};
  }

  std::string path, pretrained_model;
  TransformerConfig config = small_config();
  ThreadPool pool;
  Communicator* ranks = &no_other_ranks();
  int most_submitted = 0;  // updates at a time, where results are known late; 0: each is computed at once
  BatchOptions batch;
  RunOptions run;
  OptimizerOptions optimizer;
  Precision precision = Precision::float32;
  ParallelCorpus corpus = mirrored(150), held_out = mirrored(20);
  OneWindow windows{corpus};
  std::ostringstream out, messages;
  Log log{messages, "train"};
  std::optional<ResumableCheckpoint> state;
  std::unique_ptr<GradientWorkers> workers;
  std::optional<LateWorkers> late_workers;
  std::optional<Validator> validator;
  std::optional<Reporter> reporter;
  std::unique_ptr<Trainer> trainer;
};

inline std::vector<float> saved_parameters(const std::string& path) {
  const Checkpoint checkpoint = load_checkpoint(path);
  const auto flat = checkpoint.parameters.flat();
  return {flat.begin(), flat.end()};
}

}  // namespace heed
