#include "heed/run/train.h"

#include <unistd.h>

#include <istream>
#include <optional>

#include "heed/base/signals.h"
#include "heed/base/streams.h"
#include "heed/run/device_choice.h"
#include "heed/run/peer_options.h"
#include "heed/run/ranks.h"
#include "heed/run/train_checks.h"
#include "heed/run/train_report.h"
#include "heed/run/train_session.h"
#include "heed/train/model_files.h"
#include "heed/train/model_lock.h"

namespace heed {
namespace {

/// The exit code after a signal that interrupted the training; the same command goes on with it.
constexpr int kInterrupted = 75;

/// Returns whether a file exists, can be read as a checkpoint, and holds the state of a training.
bool holds_training(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return false;
  try {
    return load_training_state(path).has_value();
  } catch (const Error&) {
    return false;
  }
}

void run_average(const TrainOptions& options, Log& log) {
  if (options.output.empty()) throw UsageError("--average needs a file to write (-o C.h5)");
  const ModelLock lock(options.output, "-o", log);
  if (holds_training(options.output))
    throw Error(
        Position{options.output},
        "holds the state of a training, which the average would replace (name another file with -o, or remove it)");
  save_checkpoint(options.output, average_checkpoints(options.average));
  log.info("wrote " + options.output + ", the average of " + std::to_string(options.average.size()) +
           (options.average.size() == 1 ? " model" : " models"));
}

/// Returns the options with the defaults that depend on other options: batches of 128 images for labels, and evalb in
/// place of BLEU for trees. `vocabularies` are those of the options.
TrainOptions with_defaults(const TrainOptions& options, const std::vector<TextModel>& vocabularies) {
  TrainOptions out = options;
  if (is_classifier(options.model_options.config)) {
    if (!out.batch.mini_batch && !out.batch.mini_batch_words) out.batch.mini_batch = 128;
    return out;
  }
  if (!is_given(options.given, "valid-metrics") && vocabularies.back().steps().mode == TokenMode::trees)
    out.run.valid_metrics = {Metric::perplexity, Metric::evalb};
  return out;
}

/// Trains, as one rank of several or alone. Throws Interrupted after a signal that comes before the training begins.
int train(const TrainOptions& asked, std::istream& in, Rank& self) {
  Communicator& ranks = self.ranks;
  Log& log = self.log;
  const bool is_first = ranks.rank() == 0;
  TrainOptions options;
  std::vector<TextModel> vocabularies;
  run_together(ranks, [&] {
    vocabularies = read_vocabularies(asked);
    options = with_defaults(asked, vocabularies);
  });
  std::optional<InterruptGuard> interrupts;
  std::optional<ModelLock> lock;
  const std::string notice =
      log.info_text("interrupted: stopping as soon as the model is saved; Ctrl-C again stops without saving");
  run_on_first(ranks, [&] {
    // Other programs may write to a device or a pipe. It is an error here, because train replaces the files it writes.
    if (!options.check) check_writable(options.model);
    if (!options.run.plot.empty()) check_writable(options.run.plot);
    if (options.check || options.dry_run) return;
    lock.emplace(options.model, "-m", log);
    const int left = lock->held() ? remove_left_temporary_files(options.model) : 0;
    if (left > 0) log.detail("removed " + format_count(left) + " temporary files of killed trainings");
  });
  if (!options.check && !options.dry_run) interrupts.emplace(is_first ? notice : "");
  SharedInput shared(ranks, in);
  std::istream input(ranks.size() > 1 ? &shared : in.rdbuf());
  const std::optional<int> gpu = chosen_gpu(options.device, ranks, log);
  std::optional<TrainSession> made;
  run_together(
      ranks, [&] { made.emplace(options, vocabularies, input, log, ranks, gpu, interrupts ? &*interrupts : nullptr); });
  TrainSession& session = *made;
  session.text().read();
  run_together(ranks, [&] { session.text().read_validation(input); });
  run_together(ranks, [&] { session.open_gpu(); });
  run_together(ranks, [&] { session.load(!options.check); });
  session.agree_on_speed();
  run_together(ranks, [&] { session.plan(); });
  check_same(ranks, "trains", [&] { return session.identity(); });
  warn_of_different_processors(ranks, processor_name(gpu), log);
  session.connect_gpus();
  if (options.check) {
    print_check(session, log, self.out);
    return 0;
  }
  if (options.dry_run) {
    print_plan(session, self.out);
    return 0;
  }
  Reporter reporter(options.run.log_format, self.out, log);
  std::unique_ptr<Trainer> made_trainer;
  run_together(ranks, [&] { made_trainer.reset(new Trainer(session.make_trainer(reporter))); });
  Trainer& trainer = *made_trainer;
  const TrainingState& state = session.run().state;
  if (ranks.any(interrupts->signal() != 0)) throw Interrupted();
  const bool was_finished = trainer.already_finished();
  session.take_changes(was_finished);
  if (was_finished) {
    log.info(options.model + ": training is finished already: " + state.finish_reason);
  } else {
    log.info(describe_model(session));
    if (state.updates > 0)
      log.info(options.model + ": goes on after update " + format_count(state.updates));
    else if (!options.pretrained_model.empty())
      log.info(options.model + ": begins with the parameters of " + options.pretrained_model);
  }
  if (trainer.run(*interrupts) == Trainer::Outcome::finished) return 0;
  log.info("interrupted; saved after update " + format_count(state.updates) + " (the same command goes on from there)");
  return is_first ? kInterrupted : 0;
}

}  // namespace

void TrainOptions::set_defaults_of_task() {
  const ModelConfig& config = model_options.config;
  const bool labels = is_classifier(config);
  images.augment = image_input(config) && !labels ? Augmentation::none : ImageTrainingOptions().augment;
  run.valid_metrics = labels ? std::vector{Metric::perplexity, Metric::accuracy} : RunOptions().valid_metrics;
}

int run_train(const TrainOptions& options, std::istream& in, std::ostream& out, Log& log) {
  const std::unique_ptr<Communicator> launched = make_communicator();
  Rank self(launched ? *launched : no_other_ranks(), out, log);
  check_same(self.ranks, "trains", [&] {
    TrainOptions copy = options;
    return describe_options(FieldList::of(copy), FieldList::of(copy.common));
  });
  run_together(self.ranks, [&] { check_options(options, self.ranks.size()); });
  if (!options.average.empty()) {
    run_on_first(self.ranks, [&] { run_average(options, log); });
    return 0;
  }
  try {
    return train(options, in, self);
  } catch (const Interrupted&) {
    self.log.info("interrupted before the training began; no file has changed (give the same command again)");
    return self.ranks.rank() == 0 ? kInterrupted : 0;
  }
}

ToolInfo train_tool_info() {
  return {.name = "train",
          .purpose = "learn a model from pairs of texts, trees or images; the same command, given again, resumes",
          .usage = {"train -t SRC TGT -v VOCAB [VOCAB] -m MODEL.h5 [options]",
                    "paste src tgt | train --tsv - -v VOCAB -m MODEL.h5 [options]",
                    "train --trees TREES -v VOCAB TREE_VOCAB -m MODEL.h5 [options]",
                    "train --task vit -t IMAGES LABELS -m MODEL.h5 [options]", "train --average A.h5 B.h5 -o C.h5"},
          .examples = {"train -t train.en train.fr --valid-sets valid.en valid.fr -v vocab -m model.h5 "
                       "--task transformer-tiny --after 20e",
                       "train --check -t train.en train.fr -v vocab --task transformer-base"},
          .peers = train_peer_options(),
          .has_ranks = true,
          .further_file = file_beside_model,
          .saves_memory =
              "give smaller batches with --mini-batch-words, shorter sequences with --max-length, fewer "
              "--threads, or a smaller model"};
}

}  // namespace heed
