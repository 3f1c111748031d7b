#include "heed/run/train_checks.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/cost/cluster.h"
#include "heed/inspect/plot.h"
#include "heed/model/make_model.h"
#include "heed/model/model_config.h"
#include "heed/train/model_files.h"
#include "heed/train/model_lock.h"
#include "heed/train/training_length.h"

namespace heed {
namespace {

/// Throws UsageError when an option that the user has set would have no effect.
void check_useless(const TrainOptions& options) {
  TrainOptions copy = options;
  const FieldList common = FieldList::of(copy.common);
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
    if (name == "teacher-weight") needs(!options.batch.teacher.empty(), "models that teach (--teacher A.h5)");
    if (name == "guided-alignment-weight")
      needs(!options.guided_alignment.empty(), "alignments (--guided-alignment FILE)");
    const bool images = image_input(options.model_options.config);
    if (is_any_of({"randaugment-operations", "randaugment-magnitude"}))
      needs(options.images.augment == Augmentation::randaugment, "--augment randaugment");
    if (is_classifier(options.model_options.config) && is_any_of({"max-length", "on-long"}))
      throw UsageError("--" + name + ": has no use with labels, which are one token each");
    if (images && is_any_of({"trees", "pretokenized", "guided-alignment", "bpe-dropout", "sample-alpha"}))
      throw UsageError("--" + name + ": has no use with images");
    const std::string unmet = unmet_need(options.model_options.config, name);
    needs(unmet.empty(), unmet);
  }
}

/// Appends the files that an option names to `out`.
void add_files(std::vector<NamedFile>& out, const std::string& option, const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (!file.empty()) out.push_back({option, file});
}

/// Returns the files of the training text.
std::vector<NamedFile> training_files(const TrainOptions& options) {
  std::vector<NamedFile> out;
  add_files(out, "-t", options.train_sets);
  add_files(out, "--tsv", {options.tsv});
  add_files(out, "--trees", {options.trees});
  return out;
}

/// Returns all files that are read as text.
std::vector<NamedFile> text_files(const TrainOptions& options) {
  std::vector<NamedFile> out = training_files(options);
  add_files(out, "--valid-sets", options.valid_sets);
  add_files(out, "--guided-alignment", {options.guided_alignment});
  return out;
}

/// Returns whether a file can be read only once, as standard input and pipes can.
bool is_stream(const std::string& file) {
  struct stat found;
  return file == "-" || (::stat(file.c_str(), &found) == 0 &&
                         (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode) || S_ISCHR(found.st_mode)));
}

/// Throws UsageError where the options give too few or too many vocabularies.
void check_vocabularies(const TrainOptions& options) {
  const ModelConfig& config = options.model_options.config;
  if (image_input(config)) {
    if (options.vocabularies.size() > 1)
      throw UsageError("-v: takes one vocabulary, that of the targets, because images have none");
    if (options.vocabularies.empty() && !is_classifier(config))
      throw UsageError("no vocabulary for the sentences (-v VOCAB; build-vocab makes it)");
    if (options.vocabularies.empty())
      for (const auto& [option, file] : training_files(options))
        if (is_stream(file))
          throw UsageError(option + " " + file +
                           ": images and labels are read twice, which standard input and pipes cannot be (give a file, "
                           "or the labels with -v)");
    return;
  }
  if (options.vocabularies.empty()) throw UsageError("no vocabulary (-v VOCAB [VOCAB]; build-vocab makes them)");
}

/// Throws UsageError for options that do not describe a training.
void check_training(const TrainOptions& options) {
  if (!options.output.empty()) throw UsageError("--output is for --average (the model's name is given to -m)");
  const int texts =
      (options.train_sets.empty() ? 0 : 1) + (options.tsv.empty() ? 0 : 1) + (options.trees.empty() ? 0 : 1);
  if (texts == 0) throw UsageError("no text to train on (-t SRC TGT, --tsv FILE or --trees FILE)");
  if (texts > 1) throw UsageError("-t, --tsv and --trees: give one of them");
  if (!options.train_sets.empty() && options.train_sets.size() != 2)
    throw UsageError("-t takes two files, source and target (one file with both: --tsv)");
  if (options.valid_sets.size() > 2) throw UsageError("--valid-sets takes two files, source and target, or a TSV");
  std::vector<NamedFile> inputs = text_files(options);
  add_files(inputs, "-v", options.vocabularies);
  check_standard_input(inputs);
  check_vocabularies(options);
  if (options.vocabularies.size() > 2) throw UsageError("-v takes one vocabulary, or two: source and target");
  if (options.model.empty() && !options.check) throw UsageError("no name for the model (-m MODEL.h5)");
  if (options.run.valid_metrics.empty()) throw UsageError("--valid-metrics is empty");
  if (options.check && options.dry_run) throw UsageError("--check and --dry-run exclude each other (give one of them)");
  if (!options.cluster.empty()) Cluster::parse("--cluster", options.cluster);
  if (options.batch.r_drop > 0 && !options.batch.teacher.empty())
    throw UsageError("--r-drop and --teacher exclude each other: both give the predictions something to agree with");
  options.optimizer.validate();
  const TrainingLength after("--after", options.run.after);
  const Schedule schedule{.kind = options.optimizer.lr_schedule};
  if (schedule.needs_end() && after.unit() == TrainingLength::Unit::hours)
    throw UsageError("--lr-schedule " + std::string(enum_name(schedule.kind)) +
                     " needs an end that is the same in every run (give --after in e, u or t)");
  if (options.run.early_stopping > 0 && options.valid_sets.empty())
    throw UsageError("--early-stopping needs something to validate on (give --valid-sets)");
  if (options.run.keep_best && options.valid_sets.empty())
    throw UsageError("--keep-best needs something to validate on (give --valid-sets)");
  if (!options.run.plot_with.empty() && options.run.plot.empty())
    throw UsageError("--plot-with needs a picture to draw (give --plot FILE.svg)");
  TrainingLength("--valid-freq", options.run.valid_freq);
  if (options.run.save_freq) TrainingLength("--save-freq", *options.run.save_freq);
  if (options.run.disp_freq) TrainingLength("--disp-freq", *options.run.disp_freq);
}

/// Throws UsageError where one of several ranks would read standard input as a vocabulary or as one of two files:
/// launchers give it to rank 0 alone, and SharedInput hands it out where it is the only input.
void check_input(const TrainOptions& options) {
  const auto reads = [](const std::vector<std::string>& files) {
    return files.size() == 2 && std::ranges::find(files, "-") != files.end();
  };
  if (reads(options.train_sets) || reads(options.valid_sets) || options.guided_alignment == "-" ||
      std::ranges::find(options.vocabularies, "-") != options.vocabularies.end())
    throw UsageError("several processes train together, which read standard input only as --tsv - (give files)");
}

/// Throws UsageError where the name of a file that is written does not fit its contents.
void check_names(const TrainOptions& options) {
  for (const auto& [option, file] : {NamedFile{"-m", options.model}, {"-o", options.output}}) {
    if (file == "-") throw UsageError(option + " -: a checkpoint cannot go to standard output (name a file)");
    // No tool would read a checkpoint of such a name: open_input() expects compressed data behind it.
    if (const std::string ending(compressed_ending(file)); !ending.empty())
      throw UsageError(option + " " + file + ": a checkpoint is not compressed (take " + ending + " off the name)");
  }
  check_picture("--plot", options.run.plot);
}

/// Returns whether validations compute a metric.
bool uses(const TrainOptions& options, Metric metric) {
  return std::ranges::count(options.run.valid_metrics, metric) > 0;
}

/// Throws UsageError where a metric of texts is asked for, and the targets are no text: `why` says what they are.
void refuse_text_metrics(const TrainOptions& options, const std::string& why) {
  for (const Metric metric : {Metric::bleu, Metric::chrf})
    if (uses(options, metric))
      throw UsageError("--valid-metrics " + std::string(enum_name(metric)) + ": has no use for " + why);
}

/// Throws UsageError where a model that classifies has no labels as targets, or another model has some.
void check_labels(const TrainOptions& options, const ModelConfig& config, const TextModel& target) {
  const bool labels = target.steps().mode == TokenMode::labels;
  const std::string name = options.vocabularies.empty() ? "" : options.vocabularies.back();
  if (is_classifier(config) && !labels)
    throw UsageError("-v: " + name +
                     " has no labels (leave -v out, or make it with build-vocab --type words --mode labels)");
  if (!is_classifier(config) && labels)
    throw UsageError("-v: " + name + " has labels, and --task " + std::string(architecture(config)) + " writes text");
  if (labels) refuse_text_metrics(options, "labels (accuracy has)");
  if (!labels && (options.images.mixup > 0 || options.images.cutmix > 0))
    throw UsageError(std::string(options.images.mixup > 0 ? "--mixup" : "--cutmix") + ": mixes labels, and --task " +
                     std::string(architecture(config)) + " writes sentences");
  if (labels && options.batch.r_drop > 0 && (options.images.mixup > 0 || options.images.cutmix > 0))
    throw UsageError("--r-drop: has no use with --mixup and --cutmix, whose targets are mixed");
}

/// Throws UsageError where two passes would always agree.
void check_r_drop(const TrainOptions& options, const ModelConfig& config) {
  const auto has_dropout = [](const auto& of) {
    double most = of.dropout;
    if constexpr (requires { of.attention_dropout; }) most = std::max(most, of.attention_dropout);
    if constexpr (requires { of.ffn_dropout; }) most = std::max(most, of.ffn_dropout);
    if constexpr (requires { of.stochastic_depth; }) most = std::max(most, of.stochastic_depth);
    return most > 0;
  };
  if (options.batch.r_drop > 0 && !std::visit(has_dropout, config))
    throw UsageError("--r-drop: needs dropout, without which both passes are the same (--dropout P)");
}

/// Throws UsageError where the options ask for trees, and the target vocabulary or the metrics have none, or the other
/// way round.
void check_trees(const TrainOptions& options, const ModelConfig& config, const TextModel& target) {
  const bool trees = target.steps().mode == TokenMode::trees;
  if (!options.trees.empty() && !trees)
    throw UsageError("--trees: " + options.vocabularies.back() +
                     " is no vocabulary of trees (build-vocab --type trees)");
  if (!trees && uses(options, Metric::evalb))
    throw UsageError("--valid-metrics evalb: compares trees (build-vocab --type trees makes their vocabulary)");
  if (!trees) return;
  if (options.vocabularies.size() != 2) throw UsageError("-v: sentences and trees need a vocabulary each (give two)");
  if (options.pretokenized) throw UsageError("--pretokenized: has no use with trees, which are read in brackets");
  refuse_text_metrics(options, "trees (evalb has)");
  if (make_model<float>(config)->is_parallel())
    throw UsageError("--task nat: a tree is predicted one piece after the other (take another task)");
}

/// Throws UsageError where pieces are to be drawn and cannot be.
void check_sampling(const TrainOptions& options, const TextModel& source, const TextModel& target) {
  const bool dropout = options.batch.bpe_dropout.has_value(), alpha = options.batch.sample_alpha.has_value();
  if (!dropout && !alpha) return;
  if (dropout && alpha)
    throw UsageError(
        "--bpe-dropout and --sample-alpha exclude each other: one is for BPE, the other for unigram models");
  for (std::size_t i = 0; i < options.vocabularies.size(); ++i) {
    const TextModel& model = i == 0 ? source : target;
    if (model.steps().mode == TokenMode::trees) continue;  // the labels of trees stay whole
    const Subwords& subwords = model.subwords();
    if (dropout && subwords.type() != SubwordType::bpe)
      throw UsageError("--bpe-dropout: " + options.vocabularies[i] +
                       " has no merges that can be left out (build-vocab "
                       "--type bpe makes some)");
    if (alpha && !subwords.is_unigram())
      throw UsageError("--sample-alpha: " + options.vocabularies[i] +
                       " is no unigram model (build-vocab --type unigram makes one)");
  }
}

/// Throws UsageError where a training text may be longer than the model allows.
void check_length(const TrainOptions& options, const ModelConfig& config) {
  if (const auto longest = longest_sequence(config); longest && options.batch.max_length > *longest)
    throw UsageError("--max-length " + std::to_string(options.batch.max_length) + " is more than the " +
                     std::to_string(*longest) +
                     " positions of the model (lower --max-length, or raise --max-positions or --fixed-length)");
}

/// Throws UsageError where alignments are to guide the attention of a model that has none, or are those of trees that
/// are not there.
void check_alignments(const TrainOptions& options, const ModelConfig& config, const TextModel& target) {
  if (options.guided_alignment.empty()) return;
  if (last_cross_attention(*make_model<float>(config)) < 0)
    throw UsageError("--guided-alignment: --task " + std::string(architecture(config)) +
                     " has no attention to guide (rnn-attention and the Transformers have some)");
  if (options.links_to_leaves() && target.steps().mode != TokenMode::trees)
    throw UsageError("--guided-alignment leaves: the targets are no trees (for a file of this name, give ./leaves)");
}

}  // namespace

void check_options(const TrainOptions& options, int ranks) {
  check_useless(options);
  if (ranks > 1) check_input(options);
  if (options.average.empty()) check_training(options);
  check_names(options);
}

void check_with_texts(const TrainOptions& options, const ModelConfig& config, const TextModel& source,
                      const TextModel& target) {
  check_sampling(options, source, target);
  check_r_drop(options, config);
  check_trees(options, config, target);
  check_labels(options, config, target);
  check_length(options, config);
  check_alignments(options, config, target);
}

std::string file_beside_model(const FieldList& fields, const std::string& path) {
  const auto text = [&](const char* option) {
    const std::vector<std::string> words = fields.find(option)->get_text();
    return words.empty() ? "" : words[0];
  };
  const auto is_on = [&](const char* option) { return text(option) != "0" && text(option) != "false"; };
  for (const auto& [option, name] : {std::pair("model", "-m"), {"output", "-o"}}) {
    const std::string file = text(option);
    if (!file.empty() && !is_special(file) && is_same_path(path, lock_file(file)))
      return std::string("the lock file of ") + name + " " + file;
  }
  const std::string model = text("model");
  if (model.empty()) return "";
  if (is_on("keep-best"))
    for (const std::string_view metric : kValidationMetrics)
      if (is_same_path(path, model_file_variant(model, "best-" + std::string(metric)))) return "a file of --keep-best";
  for (const char* option : {"keep-last", "average-last"})
    if (is_on(option) && is_kept_model_file(model, path)) return std::string("a file of --") + option;
  return "";
}

}  // namespace heed
