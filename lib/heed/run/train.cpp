#include "heed/run/train.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <istream>
#include <optional>

#include "heed/base/signals.h"
#include "heed/base/streams.h"
#include "heed/run/device_choice.h"
#include "heed/run/peer_options.h"
#include "heed/run/ranks.h"
#include "heed/run/train_report.h"
#include "heed/run/train_session.h"
#include "heed/train/model_files.h"
#include "heed/train/model_lock.h"

namespace heed {
namespace {

/// The exit code after a signal that interrupted the training; the state is saved.
constexpr int kInterrupted = 75;

/// Throws UsageError when an option that the user has set would have no effect.
void check_useless(const TrainOptions& options) {
  TrainOptions copy = options;
  const FieldList common = FieldList::of(copy.common), of_images = FieldList::of(copy.images);
  for (const std::string& name : options.given) {
    const auto is_any_of = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const auto needs = [&](bool there, const std::string& what) {
      if (!there) throw UsageError("--" + name + ": needs " + what);
    };
    if (!options.average.empty()) {
      if (!is_any_of({"average", "output"}) && !common.find(name))
        throw UsageError("--" + name + ": has no use with --average, which trains nothing");
      continue;
    }
    if (is_any_of({"valid-freq", "valid-metrics"}))
      needs(!options.valid_sets.empty(), "something to validate on (give --valid-sets)");
    if (name == "cluster") needs(options.dry_run, "--dry-run, which predicts the speed");
    if (name == "tempdir") needs(options.batch.shuffle_window.has_value(), "a text on disk (--shuffle-window N)");
    if (name == "teacher-weight") needs(!options.batch.teacher.empty(), "models that teach (--teacher A.h5 B.h5)");
    if (name == "guided-alignment-weight")
      needs(!options.guided_alignment.empty(), "alignments (--guided-alignment FILE)");
    const bool images = image_input(options.model_options.config);
    if (of_images.find(name)) needs(images, "a model that reads images (such as --task vit)");
    if (images && is_any_of({"trees", "pretokenized", "guided-alignment", "bpe-dropout", "sample-alpha"}))
      throw UsageError("--" + name + ": has no use with images");
    const std::string unmet = unmet_need(options.model_options.config, name);
    needs(unmet.empty(), unmet);
  }
}

void run_average(const TrainOptions& options, Log& log) {
  if (options.output.empty()) throw UsageError("--average needs a file to write (-o C.h5)");
  const ModelLock lock(options.output, "-o", log);
  save_checkpoint(options.output, average_checkpoints(options.average));
  log.info("wrote " + options.output + ", the average of " + std::to_string(options.average.size()) +
           (options.average.size() == 1 ? " model" : " models"));
}

/// Throws UsageError where the options give too few or too many vocabularies.
void check_vocabularies(const TrainOptions& options) {
  const ModelConfig& config = options.model_options.config;
  if (image_input(config)) {
    if (options.vocabularies.size() > 1)
      throw UsageError("-v: takes one vocabulary, that of the targets, because images have none");
    if (options.vocabularies.empty() && !is_classifier(config))
      throw UsageError("no vocabulary for the sentences (-v VOCAB; build-vocab makes it)");
    if (options.vocabularies.empty() && options.tsv == "-")
      throw UsageError(
          "--tsv -: labels are read twice, which standard input cannot be (give a file, or the labels with -v)");
    return;
  }
  if (options.vocabularies.empty()) throw UsageError("no vocabulary (-v VOCAB [VOCAB]; build-vocab makes them)");
}

/// Throws UsageError for everything that is wrong with the options themselves, before any file is read.
void check_options(const TrainOptions& options) {
  if (!options.output.empty()) throw UsageError("--output is for --average (the model's name is given to -m)");
  const int texts =
      (options.train_sets.empty() ? 0 : 1) + (options.tsv.empty() ? 0 : 1) + (options.trees.empty() ? 0 : 1);
  if (texts == 0) throw UsageError("no text to train on (-t SRC TGT, --tsv FILE or --trees FILE)");
  if (texts > 1) throw UsageError("-t, --tsv and --trees: give one of them");
  if (!options.train_sets.empty() && options.train_sets.size() != 2)
    throw UsageError("-t takes two files, source and target (one file with both: --tsv)");
  if (options.valid_sets.size() > 2) throw UsageError("--valid-sets takes two files, source and target, or a TSV");
  check_vocabularies(options);
  if (options.vocabularies.size() > 2) throw UsageError("-v takes one vocabulary, or two: source and target");
  if (options.model.empty() && !options.check) throw UsageError("no name for the model (-m MODEL.h5)");
  if (options.run.valid_metrics.empty()) throw UsageError("--valid-metrics is empty");
  if (!options.cluster.empty()) Cluster::parse("--cluster", options.cluster);
  if (options.batch.r_drop > 0 && !options.batch.teacher.empty())
    throw UsageError("--r-drop and --teacher exclude each other: both give the predictions something to agree with");
  options.optimizer.validate();
  TrainingLength("--after", options.run.after);
  TrainingLength("--valid-freq", options.run.valid_freq);
  if (options.run.save_freq) TrainingLength("--save-freq", *options.run.save_freq);
  if (options.run.disp_freq) TrainingLength("--disp-freq", *options.run.disp_freq);
}

/// Throws Error when the folder of `path` cannot be written, so that hours of training do not end with this error.
void check_writable(const std::string& path) {
  const std::string folder = folder_of(target_of_output(path));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) throw Error(Position{path}, "cannot be written: " + errno_text());
}

/// Throws UsageError where one of several ranks would read standard input as one of two files: launchers give it to
/// rank 0 alone, and SharedInput hands it out where it is the only input.
void check_input(const TrainOptions& options) {
  const auto reads = [](const std::vector<std::string>& files) {
    return files.size() == 2 && std::ranges::find(files, "-") != files.end();
  };
  if (reads(options.train_sets) || reads(options.valid_sets) || options.guided_alignment == "-")
    throw UsageError("several processes train together, which read standard input only as --tsv - (give files)");
}

/// Returns the options with other defaults where the targets are no text: evalb in place of BLEU for trees; accuracy in
/// place of BLEU, and batches of 128 images, for labels. Images that sentences describe are not changed, because a flip
/// would swap left and right.
TrainOptions with_defaults(const TrainOptions& options) {
  TrainOptions out = options;
  const auto given = [&](std::string_view name) { return is_given(options.given, name); };
  const bool chosen = given("valid-metrics");
  const ModelConfig& config = options.model_options.config;
  if (image_input(config) && !is_classifier(config) && !given("augment")) out.images.augment = Augmentation::none;
  if (is_classifier(config)) {
    if (!chosen) out.run.valid_metrics = {Metric::perplexity, Metric::accuracy};
    if (!out.batch.mini_batch && !out.batch.mini_batch_words) out.batch.mini_batch = 128;
    return out;
  }
  if (!chosen && TextModel::read(options.vocabularies.back()).steps().mode == TokenMode::trees)
    out.run.valid_metrics = {Metric::perplexity, Metric::evalb};
  return out;
}

/// Trains, as one rank of several or alone.
int train(const TrainOptions& asked, std::istream& in, Rank& self) {
  Communicator& ranks = self.ranks;
  Log& log = self.log;
  const bool is_first = ranks.rank() == 0;
  TrainOptions options;
  run_together(ranks, [&] { options = with_defaults(asked); });
  std::optional<InterruptGuard> interrupts;
  std::optional<ModelLock> lock;
  const std::string notice =
      log.info_text("interrupted: stopping as soon as the model is saved; Ctrl-C again stops without saving");
  run_on_first(ranks, [&] {
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
  const std::optional<int> gpu = chosen_gpu(options.device, ranks);
  std::optional<TrainSession> made;
  run_together(ranks, [&] { made.emplace(options, input, log, ranks, gpu); });
  TrainSession& session = *made;
  session.read_texts();
  run_together(ranks, [&] { session.read_validation(input); });
  run_together(ranks, [&] { session.load(!options.check); });
  session.agree_on_speed();
  run_together(ranks, [&] { session.plan(); });
  check_same(ranks, "trains", [&] { return session.identity(); });
  warn_of_different_processors(ranks, processor_name(gpu), log);
  run_together(ranks, [&] { session.open_gpu(); });
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
  if (trainer.already_finished()) {
    log.info(options.model + ": training is finished already: " + state.finish_reason);
    trainer.run(*interrupts);  // trains no more, but draws the picture of --plot
    return 0;
  }
  log.info(describe_model(session));
  if (state.updates > 0)
    log.info(options.model + ": goes on after update " + format_count(state.updates));
  else if (!options.pretrained_model.empty())
    log.info(options.model + ": begins with the parameters of " + options.pretrained_model);
  if (trainer.run(*interrupts) == Trainer::Outcome::finished) return 0;
  log.info("interrupted; saved after update " + format_count(state.updates) + " (the same command goes on from there)");
  return is_first ? kInterrupted : 0;
}

}  // namespace

int run_train(const TrainOptions& options, std::istream& in, std::ostream& out, Log& log) {
  const std::unique_ptr<Communicator> launched = make_communicator();
  Rank self(launched ? *launched : no_other_ranks(), out, log);
  check_same(self.ranks, "trains", [&] {
    TrainOptions copy = options;
    return describe_options(FieldList::of(copy), FieldList::of(copy.common));
  });
  run_together(self.ranks, [&] {
    check_useless(options);
    if (self.ranks.size() > 1) check_input(options);
    if (options.average.empty()) check_options(options);
  });
  if (options.average.empty()) return train(options, in, self);
  run_on_first(self.ranks, [&] { run_average(options, log); });
  return 0;
}

ToolInfo train_tool_info() {
  return {.name = "train",
          .purpose = "learn to translate from parallel text; the same command, given again, resumes",
          .usage = {"train -t SRC TGT -v VOCAB [VOCAB] -m MODEL.h5 [options]",
                    "paste src tgt | train --tsv - -v VOCAB -m MODEL.h5 [options]",
                    "train --trees TREES -v VOCAB TREE_VOCAB -m MODEL.h5 [options]",
                    "train --task vit -t IMAGES LABELS -m MODEL.h5 [options]", "train --average A.h5 B.h5 -o C.h5"},
          .examples = {"train -t train.en train.fr --valid-sets valid.en valid.fr -v vocab -m model.h5 "
                       "--task transformer-tiny --after 20e",
                       "train --check -t train.en train.fr -v vocab --task transformer-base"},
          .peers = train_peer_options(),
          .has_ranks = true};
}

}  // namespace heed
