#include "heed/run/train_session.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "heed/checkpoint/integrity.h"
#include "heed/cost/training_cost.h"
#include "heed/model/make_model.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/text/trees/linear_tree.h"
#include "heed/train/gpu_workers.h"
#include "heed/train/learning_curve.h"
#include "heed/train/model_files.h"

namespace heed {
namespace {

constexpr const char *kWindow = "--shuffle-window", *kPretrained = "--pretrained-model",
                     *kValidationText = "the validation text's fingerprint";

/// Returns the precision of training on a GPU or a CPU. `automatic` chooses bfloat16 on GPUs, and on processors that
/// compute bfloat16 fast.
Precision resolve(PrecisionChoice choice, bool gpu) {
  // has_fast_bfloat16() is called for every value of --precision, because it throws an Error when the environment
  // variable HEED_ISA is wrong, and this Error should come before any text is read.
  const bool fast = has_fast_bfloat16() || gpu;
  switch (choice) {
    case PrecisionChoice::float32:
      return Precision::float32;
    case PrecisionChoice::bfloat16:
      return Precision::bfloat16;
    case PrecisionChoice::automatic:
      return fast ? Precision::bfloat16 : Precision::float32;
  }
  throw Error("internal: unknown precision");
}

/// Warns when the learning rate rises for more than a third of the training.
void warn_of_long_warmup(const Schedule& schedule, double planned_updates, Log& log) {
  const auto warmup = static_cast<double>(schedule.warmup);
  if (3 * warmup <= planned_updates) return;
  char rates[64];
  std::snprintf(rates, sizeof rates, "%.3g of %.3g", schedule.rate(static_cast<std::int64_t>(planned_updates), 1),
                schedule.peak);
  const std::string updates = format_count(std::llround(planned_updates));
  const std::int64_t shorter = std::llround(planned_updates / 10);
  const bool ends_within = warmup >= planned_updates;
  log.warn("the learning rate rises for " + format_count(schedule.warmup) + " updates (--lr-warmup), but " +
           (ends_within ? "training ends after about " + updates + ", at a rate of " + rates
                        : "training has about " + updates + " in all") +
           " (give --lr-warmup " + (shorter > 0 ? std::to_string(shorter) + " or less" : "0") +
           ", or train longer with --after)");
}

/// Returns a hash as 16 hexadecimal digits.
std::string digits(std::uint64_t hash) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string checksum(const TextModel& model) {
  std::ostringstream out;
  model.write(out);
  return std::to_string(Checksum::of(out.view()).crc);
}

std::string checksum(const ParameterValues<float>& parameters) {
  const auto bytes = std::as_bytes(std::span(parameters.flat()));
  return std::to_string(Checksum::of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).crc);
}

/// Returns the form in which exact match compares lines with the text steps `steps`: for trees the linear tree, which
/// is what the model learns, so that spaces, traces and the outermost bracket do not count; none for other text.
ExactForm exact_form(const TextSteps& steps) {
  if (steps.mode != TokenMode::trees) return {};
  return [function_tags = steps.function_tags](const std::string& line) {
    std::string linear;
    try {
      linearize_tree(line, function_tags, linear);
    } catch (const LineError&) {
      return line;  // no tree, and thus not equal to the reference
    }
    return linear;
  };
}

}  // namespace

std::vector<TextModel> read_vocabularies(const TrainOptions& options) {
  std::vector<TextModel> out;
  for (const std::string& file : options.vocabularies)
    out.push_back(!out.empty() && file == options.vocabularies.front() ? out.front() : TextModel::read(file));
  return out;
}

TrainSession::TrainSession(const TrainOptions& options, const std::vector<TextModel>& vocabularies, std::istream& in,
                           Log& log, Communicator& ranks, std::optional<int> gpu, const InterruptGuard* interrupts)
    : options_(options),
      log_(log),
      ranks_(ranks),
      compared_(load_compared_trainings(options.run.plot_with)),
      pool_(thread_count(options.threads)),
      gpu_number_(gpu),
      precision_(resolve(options.batch.precision, gpu_number_.has_value())),
      text_(options, vocabularies, in, log, ranks, pool_, interrupts),
      optimizer_options_(options.optimizer) {}

Checkpoint TrainSession::new_checkpoint() const {
  std::shared_ptr<const Model<float>> model = make_model<float>(text_.config());
  ParameterValues<float> parameters(model->layout());
  return {std::move(model), std::move(parameters), text_.source(), text_.target()};
}

/// Returns the value of a setting in the state of the training; null if the state does not have the setting.
const std::string* TrainSession::stored_setting(const std::string& name) const {
  const auto& settings = run_->state.settings;
  const auto found = std::ranges::find(settings, name, &std::pair<std::string, std::string>::first);
  return found == settings.end() ? nullptr : &found->second;
}

/// Returns the settings that decide the result of training: options, and the fingerprint of the training text. A
/// training that goes on does not read the pretrained model, and keeps the name of the one with which it began.
std::vector<RunSetting> TrainSession::settings() const {
  TrainOptions copy = options_;
  const FieldList all = FieldList::of(copy);
  std::vector<RunSetting> out = {
      {kWindow, text_of(*all.find("shuffle-window")), true},
      {"the training text's fingerprint", digits(text_.corpus().fingerprint()), true},
      {.name = "the number of training examples",
       .value = std::to_string(text_.corpus().pairs()),
       .required = true,
       .of_text = true},
      {kPretrained, pretrained_model()},
      {"the precision", precision_ == Precision::float32 ? "float32" : "bfloat16"},
  };
  for (const char* const name : {"pretokenized", "on-invalid-utf8", "guided-alignment"})
    out.push_back({.name = "--" + std::string(name), .value = text_of(*all.find(name)), .of_text = true});
  const auto add = [&](const FieldList& fields, const FieldList& defaults) {
    for (std::size_t i = 0; i < fields.all().size(); ++i) {
      const Field& field = fields.all()[i];
      if (const std::string name = "--" + std::string(field.info.name); name != "--precision" && name != kWindow)
        out.push_back({name, text_of(field), name == "--optimizer", text_of(defaults.all()[i])});
    }
  };
  TrainOptions defaults;
  add(FieldList::of(copy.batch), FieldList::of(defaults.batch));
  if (reads_images()) add(FieldList::of(copy.images), FieldList::of(defaults.images));
  copy.optimizer = optimizer_options_;
  add(FieldList::of(copy.optimizer), FieldList::of(defaults.optimizer));
  if (optimizer_.schedule.needs_end()) out.push_back({"--after", options_.run.after});
  return out;
}

/// Returns the model of --pretrained-model with which the training has begun, or begins; kNotSet where there is none.
std::string TrainSession::pretrained_model() const {
  if (const std::string* const before = stored_setting(kPretrained)) return *before;
  return resumed_ || options_.pretrained_model.empty() ? kNotSet : options_.pretrained_model;
}

/// Warns where the training has begun without the model of --pretrained-model, which is not read any more.
void TrainSession::warn_of_unread_model() {
  const std::string before = pretrained_model(), &given = options_.pretrained_model;
  if (!given.empty() && given != before)
    log_.warn("--pretrained-model " + given + " has no effect: the training in " + options_.model + " has begun " +
              (before == kNotSet ? "without a model" : "with " + before) +
              " (name another file with -m to begin a new training)");
}

/// Forgets the scores of earlier validations where they are those of another text. A file of an older heed does not
/// tell of which text they are.
void TrainSession::forget_other_validations() {
  const std::string* const before = stored_setting(kValidationText);
  if (!options_.valid_sets.empty() && before && *before != digits(text_.valid_corpus().fingerprint()))
    forget_validations(run_->state, "the text of --valid-sets", log_);
}

/// The texts and the vocabularies come first, because the settings depend on them.
std::string TrainSession::identity() const {
  std::string out, lines;
  const auto add = [&](const std::string& name, const std::string& value) { out += name + " is " + value + "\n"; };
  add("the training text's hash", digits(text_.hash()));
  add("the source vocabulary's checksum", checksum(text_.source()));
  add("the target vocabulary's checksum", checksum(text_.target()));
  for (const auto& [name, value] : run_->state.settings) add(name, value);
  for (const std::string& line : text_.valid_lines()) lines += line + '\n';
  add("the validation text's hash", digits(std::hash<std::string>()(lines)));
  add("the update to go on after", std::to_string(run_->state.updates));
  // Initial parameters that come from the seed are not compared: on processors of different kinds, of which a warning
  // tells, their last bits may differ.
  const std::string& loaded = resumed_ ? options_.model : options_.pretrained_model;
  if (!loaded.empty()) add("the checksum of the parameters in " + loaded, checksum(run_->checkpoint.parameters));
  if (resumed_)
    for (const auto& [name, array] : run_->arrays) add("the checksum of " + name + " in " + loaded, checksum(array));
  for (std::size_t i = 0; i < options_.batch.teacher.size(); ++i)
    add("the checksum of the parameters in " + options_.batch.teacher[i], checksum(teachers_->parameters(i)));
  return out;
}

std::int64_t TrainSession::epoch_tokens() const {
  return classifies() ? text_.corpus().pairs() : text_.corpus().target_tokens();
}

/// Takes the warm-up and the peak of the learning rate from the saved training, unless the user has set these options.
/// A prolonged training thus keeps the values of its first part. A file of an older heed does not store the values;
/// then the values are the older heed's defaults, which were the same for every length.
void TrainSession::take_rates_from(TrainingState& state) {
  const auto stored = [&](const Field& field) -> std::string* {
    for (auto& [name, value] : state.settings)
      if (name == "--" + std::string(field.info.name)) return &value;
    return nullptr;
  };
  const FieldList fields = FieldList::of(optimizer_options_);
  const std::vector<const Field*> rates = {fields.find("lr-warmup"), fields.find("learn-rate")};
  std::vector<const Field*> missing;
  for (const Field* field : rates) {
    const std::string* const value = stored(*field);
    if (!field->get_text().empty()) continue;
    if (!value || *value == kNotSet)
      missing.push_back(field);
    else
      try {
        field->set_text({value, 1});
      } catch (const UsageError& error) {
        throw Error(Position{options_.model}, std::string("/training/state: ") + error.what() +
                                                  " (the file is damaged or forged; restore it from a copy)");
      }
  }
  optimizer_options_.set_default_rates(model().width(), std::numeric_limits<double>::infinity());
  for (const Field* field : missing)
    if (std::string* const value = stored(*field)) *value = text_of(*field);
}

/// Sets the default warm-up and peak of the learning rate where the user has set none, and warns when the training is
/// too short for its warm-up.
void TrainSession::set_rates() {
  optimizer_options_.set_default_rates(model().width(), planned_updates_);
  optimizer_ = optimizer_options_.resolve();
  warn_of_long_warmup(optimizer_.schedule, planned_updates_, log_);
}

void TrainSession::load(bool resumes) {
  if (resumes && ::access(options_.model.c_str(), F_OK) == 0) {
    run_ = load_resumable_checkpoint(options_.model);
    if (!run_)
      throw Error(Position{options_.model},
                  "is a model without training state, and would be overwritten (name another "
                  "one with -m, or remove it)");
    resumed_ = true;
  } else {
    run_.emplace(ResumableCheckpoint{new_checkpoint(), {}, {}});
    set_first_parameters(run_->checkpoint, static_cast<std::uint64_t>(options_.batch.seed), options_.pretrained_model);
  }
  make_loss();
  if (TrainingLength("--after", options_.run.after).unit() != TrainingLength::Unit::hours) return;
  OptimizerOptions optimizer = options_.optimizer;
  // Any learning rate will do, because the learning rate does not change the speed.
  optimizer.set_default_rates(model().width(), 0);
  speed_ = training_cost(work(optimizer.resolve())).tokens_per_second() * ranks_.size();
}

/// Makes the loss of the model, which may have teachers.
void TrainSession::make_loss() {
  if (options_.batch.teacher.empty()) {
    loss_ = loss_of(model());
    return;
  }
  teachers_.emplace(options_.batch.teacher, run_->checkpoint, options_.batch.max_length, gpu_number_);
  loss_ = teachers_->loss_of(model(), options_.batch.teacher_weight);
}

TrainingWork TrainSession::work(const OptimizerSettings& optimizer) {
  std::unique_ptr<TrainingWorkers> gpu;
#if HEED_HAS_CUDA
  if (gpu_) gpu = std::make_unique<GpuWorkers>(model().layout(), loss_, gpu_->context());
#endif
  return {model(), loss_,         run_->checkpoint.parameters, optimizer, text_.examples(), options_.batch, precision_,
          pool_,   std::move(gpu)};
}

void TrainSession::agree_on_speed() {
  ranks_.broadcast(std::as_writable_bytes(std::span(&speed_, 1)));
}

/// Counts the batches and the updates of an epoch. The batches of the first window are counted, and the others are
/// taken to have as many for their size. An update ends with its window.
void TrainSession::plan_epoch() {
  const BatchLimits limits = options_.batch.limits();
  EpochBatches batches(text_.examples(), limits, static_cast<std::uint64_t>(options_.batch.seed));
  batches.prepare(0);
  const bool by_pairs = limits.target_tokens == INT64_MAX;
  const auto size = [&](const WindowSize& window) {
    return static_cast<double>(by_pairs ? window.pairs : window.target_tokens);
  };
  const std::vector<WindowSize> windows = text_.corpus().sizes_of_windows(0);
  const std::int64_t delay = options_.batch.optimizer_delay;
  epoch_batches_ = epoch_updates_ = 0;
  for (const WindowSize& window : windows) {
    const double share = size(window) / size(windows.front());
    const auto in_window = std::max<std::int64_t>(1, std::llround(share * static_cast<double>(batches.size())));
    epoch_batches_ += in_window;
    epoch_updates_ += (in_window + delay - 1) / delay;
  }
}

void TrainSession::plan() {
  plan_epoch();
  planned_updates_ = TrainingLength("--after", options_.run.after).updates(epoch_updates(), epoch_tokens(), speed_);
  if (resumed_) {
    take_rates_from(run_->state);
    set_rates();
    forget_other_validations();
    warn_of_unread_model();
    saved_settings_ = run_->state.settings;
    changes_ = check_resumable(options_.model, *run_, new_checkpoint(), settings());
  } else {
    set_rates();
    for (const RunSetting& setting : settings()) run_->state.settings.emplace_back(setting.name, setting.value);
  }
  if (!options_.valid_sets.empty())
    run_->state.settings.emplace_back(kValidationText, digits(text_.valid_corpus().fingerprint()));
  run_->state.seed = static_cast<std::uint64_t>(options_.batch.seed);
  restore_training_form(*run_, options_.batch.exponential_smoothing > 0);
}

void TrainSession::take_changes(bool finished) {
  if (!finished)
    warn_of_changes(changes_, log_);
  else if (resumed_)
    run_->state.settings = saved_settings_;
}

void TrainSession::open_gpu() {
#if HEED_HAS_CUDA
  if (gpu_number_) gpu_ = std::make_unique<CudaDevice>(*gpu_number_, precision_);
#endif
}

void TrainSession::connect_gpus() {
#if HEED_HAS_CUDA
  if (gpu_ && ranks_.size() > 1) gpu_sum_ = make_gpu_sum(ranks_, gpu_info(*gpu_number_).id, log_);
#endif
}

std::string TrainSession::gradient_sum() const {
#if HEED_HAS_CUDA
  if (gpu_sum_) return gpu_sum_->name();
#endif
  return "";
}

std::unique_ptr<TrainingWorkers> TrainSession::make_workers(const Model<float>& model) {
#if HEED_HAS_CUDA
  if (gpu_) return std::make_unique<GpuWorkers>(model.layout(), loss_, gpu_->context(), ranks_, gpu_sum_.get());
#endif
  return std::make_unique<GradientWorkers>(model.layout(), loss_, precision_, pool_, ranks_);
}

Trainer TrainSession::make_trainer(Reporter& reporter) {
  const std::shared_ptr<const Model<float>> model = run_->checkpoint.model;
  workers_ = make_workers(*model);
  if (text_.valid_corpus().size() > 0) {
    const auto translate = [this, model](ParameterValues<float>& parameters, const Examples& examples,
                                         const InterruptGuard& interrupts) {
      return translate_examples(*model, parameters, resolve(options_.batch.precision, false), examples, text_.target(),
                                options_.pretokenized, text_.valid_trees(), pool_, ranks_, interrupts);
    };
    // If the target text model lower-cases its text, BLEU compares lower-cased text.
    BleuOptions bleu;
    bleu.lowercase = text_.target().steps().lowercase;
    if (options_.pretokenized) bleu.tokenize = MtevalMode::none;
    validator_.emplace(text_.valid_examples(), text_.valid_lines(), options_.run.valid_metrics, *workers_, translate,
                       bleu, exact_form(text_.target().steps()));
  }
  return Trainer({options_.model, *run_, text_.windows(), *workers_, validator(), pool_, reporter, log_,
                  options_.pretrained_model, compared_},
                 options_.batch, options_.run, optimizer_);
}

std::int64_t TrainSession::memory() const {
  const auto bytes = static_cast<std::int64_t>(run_->checkpoint.parameters.flat().size_bytes());
  return bytes * (1 + static_cast<std::int64_t>(run_->arrays.size())) + (workers_ ? workers_->memory() : 0) +
         (teachers_ ? teachers_->memory() : 0) + text_.corpus().memory() + text_.valid_corpus().memory();
}

}  // namespace heed
