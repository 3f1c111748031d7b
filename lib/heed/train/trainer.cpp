#include "heed/train/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "heed/ops/optimizer_kernels.h"
#include "heed/train/learning_curve.h"
#include "heed/train/model_files.h"

namespace heed {
namespace {

constexpr double kReportSeconds = 10;
constexpr double kStatusSeconds = 0.1;
constexpr std::int64_t kSkipsUntilRollback = 3;
constexpr std::int64_t kSkipsUntilStop = 100;
constexpr std::int64_t kRollbacksUntilStop = 10;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool is_better(Metric metric, double score, const BestScore& best) {
  if (larger_is_better(metric)) return best.update < 0 || score > best.score;
  return score < (best.update < 0 ? worst_score(metric) : best.score);
}

TrainingLength save_frequency(const RunOptions& options) {
  if (options.save_freq) return {"--save-freq", *options.save_freq};
  if (options.keep_last > 0 || options.average_last > 0) return {1, TrainingLength::Unit::epochs};
  return {0.1, TrainingLength::Unit::hours};
}

}  // namespace

Trainer::Trainer(const Parts& parts, const BatchOptions& batch_options, const RunOptions& options,
                 const OptimizerSettings& optimizer)
    : parts_(parts),
      ranks_(parts.workers.ranks()),
      batch_options_(batch_options),
      options_(options),
      optimizer_(optimizer, parts.run.checkpoint.model->layout(), parts.run.arrays),
      step_(parts.workers.make_update_step({optimizer_, parts.run.arrays, trained(),
                                            smoothing() ? &parts.run.checkpoint.parameters : nullptr,
                                            batch_options.exponential_smoothing})),
      after_("--after", options.after),
      save_freq_(save_frequency(options)),
      valid_freq_("--valid-freq", options.valid_freq),
      kept_(parts_.path, state(), options_, ranks_, parts_.log),
      started_(Clock::now()),
      seconds_before_(state().seconds),
      seconds_(seconds_before_),
      status_shown_(started_) {
  if (options.disp_freq) disp_freq_.emplace("--disp-freq", *options.disp_freq);
  if (parts.validator) {
    std::vector<std::string> metrics;
    for (const Metric metric : parts.validator->metrics()) metrics.emplace_back(enum_name(metric));
    if (state().metrics != metrics) {
      forget_validations(state(), "--valid-metrics", parts_.log);
      state().metrics = metrics;
      state().best.resize(metrics.size());
    }
  }
  step_->take_over();
  find_place_in_epoch();
  first_progress_ = shown_progress_ = progress();
}

std::int64_t Trainer::batches_in_window() {
  const std::int64_t windows = parts_.windows.windows(), wanted = state().epoch * windows + state().window;
  if (prepared_ != wanted) {
    const Examples* const before = examples_;
    examples_ = &parts_.windows.load(state().epoch, state().window);
    if (parts_.windows.varies() || examples_ != before)
      batches_.emplace(*examples_, batch_options_.limits(), static_cast<std::uint64_t>(batch_options_.seed),
                       state().window);
    batches_->prepare(state().epoch);
    prepared_ = wanted;
  }
  state().window_batches = batches_->size();
  return batches_->size();
}

/// Sets the batch with which a loaded training goes on. When changed options give the window of the epoch more or fewer
/// batches than in the saved run, the same fraction of it counts as finished.
void Trainer::find_place_in_epoch() {
  state().window = std::min(state().window, parts_.windows.windows() - 1);
  const std::int64_t before = state().window_batches, now = batches_in_window();
  state().batch = before > 0 ? scaled_batch(state().batch, before, now) : std::min(state().batch, now);
  next_window_if_done();
}

TrainingProgress Trainer::progress() {
  const double part = static_cast<double>(state().batch) / static_cast<double>(batches_in_window());
  const double windows = (static_cast<double>(state().window) + part) / static_cast<double>(parts_.windows.windows());
  return {static_cast<double>(state().epoch) + windows, state().updates, state().target_tokens, seconds_};
}

double Trainer::seconds_now() const {
  return seconds_before_ + seconds_since(started_);
}

/// Asks rank 0 for the time, which decides when to report, to save and to stop.
void Trainer::tell_time() {
  seconds_ = seconds_now();
  ranks_.broadcast(std::as_writable_bytes(std::span(&seconds_, 1)));
}

double Trainer::learning_rate() {
  const std::int64_t step = state().optimizer_step + std::ssize(submitted_) + 1;
  return optimizer_.settings().schedule.rate(step, after_.share(progress())) *
         std::exp2(-static_cast<double>(state().rollbacks));
}

/// Submits the next update, and counts it as if it would be applied.
void Trainer::submit_update() {
  const std::int64_t end = std::min(batches_in_window(), state().batch + batch_options_.optimizer_delay);
  shards_.clear();
  for (std::int64_t i = state().batch; i < end; ++i) cut_into_shards(*examples_, (*batches_)[i], shards_);
  const DropoutKey dropout{state().seed, static_cast<std::uint64_t>(state().updates)};
  Submitted update;
  update.learning_rate = learning_rate();
  step_->submit(*examples_, shards_, batch_options_.loss(), dropout,
                state().optimizer_step + std::ssize(submitted_) + 1, update.learning_rate);
  update.target_tokens_before = state().target_tokens;
  update.first_line = examples_->line(shards_[0].examples[0]);
  state().batch = end;
  ++state().updates;
  state().target_tokens += target_tokens_of(shards_);
  for (const Shard& shard : shards_) update.sentences += std::ssize(shard.examples);
  update.epochs = progress().epochs;
  next_window_if_done();
  update.after = {state().epoch, state().window, state().batch, state().updates};
  submitted_.push_back(update);
}

void Trainer::count_update(const Submitted& update, const UpdateStep::Result& result) {
  ++state().optimizer_step;
  state().consecutive_skips = 0;
  state().sentences += update.sentences;
  add_to_history(state(), update.after.updates, update.epochs, result.sums.negative_log_likelihood, result.sums.tokens);
  shown_sums_ += result.sums;
  last_norm_ = result.gradient_norm;
  last_learning_rate_ = update.learning_rate;
}

/// Collects the results of submitted updates until only `left` are not known. After an update that was not applied, the
/// training is where it was after this update, and the updates that were submitted later are to be computed again.
Trainer::Step Trainer::collect_updates(std::size_t left) {
  while (submitted_.size() > left) {
    const Submitted update = submitted_.front();
    submitted_.pop_front();
    const UpdateStep::Result result = step_->collect();
    if (result.applied) {
      count_update(update, result);
      continue;
    }
    const bool repeated = !submitted_.empty();
    submitted_.clear();
    state().epoch = update.after.epoch;
    state().window = update.after.window;
    state().batch = update.after.batch;
    state().updates = update.after.updates;
    state().target_tokens = update.target_tokens_before;
    const char* what = std::isfinite(result.sums.loss) ? "gradient" : "loss";
    const Step step =
        handle_divergence("update " + format_count(state().updates) + ": the " + what +
                          " is not finite (first line of the batch: " + std::to_string(update.first_line) + ")");
    return step == Step::skipped && repeated ? Step::repeated : step;
  }
  return Step::applied;
}

void Trainer::next_window_if_done() {
  if (state().batch < batches_in_window()) return;
  state().batch = 0;
  if (++state().window < parts_.windows.windows()) return;
  ++state().epoch;
  state().window = 0;
}

Trainer::Step Trainer::handle_divergence(const std::string& what) {
  if (options_.on_divergence == OnDivergence::stop)
    fail(what +
         "; nothing was saved since the last good state (lower --learn-rate, or "
         "let training go on with --on-divergence rollback)");
  ++state().skipped_updates;
  ++state().consecutive_skips;
  parts_.log.warn(what + ": skipped; skipped in all: " + format_count(state().skipped_updates));
  if (options_.on_divergence == OnDivergence::skip) {
    if (state().consecutive_skips >= kSkipsUntilStop)
      fail("the last " + std::to_string(kSkipsUntilStop) +
           " updates had no finite loss and gradient; nothing was saved since the "
           "last good state (lower --learn-rate)");
    return Step::skipped;
  }
  if (state().consecutive_skips < kSkipsUntilRollback) return Step::skipped;
  roll_back(std::to_string(kSkipsUntilRollback) + " updates in a row were not finite");
  return Step::rolled_back;
}

/// Ends all ranks with an error about the model file.
void Trainer::fail(const std::string& what) {
  fail_together(ranks_, Error(Position{parts_.path}, what));
}

void Trainer::roll_back(const std::string& why) {
  const bool was_saved = ranks_.any(is_first() && ::access(parts_.path.c_str(), F_OK) == 0);
  if (state().rollbacks >= kRollbacksUntilStop)
    fail("training diverges however small the learning rate; " +
         std::string(was_saved ? "the file holds the last good state" : "nothing was saved") +
         " (look at the data, lower --learn-rate, or raise --lr-warmup)");
  TrainingState abandoned = std::move(state());
  ResumableCheckpoint& run = parts_.run;
  if (was_saved) {
    std::optional<ResumableCheckpoint> saved;
    run_together(ranks_, [&] {
      saved = load_resumable_checkpoint(parts_.path);
      if (!saved) throw Error(Position{parts_.path}, "holds no training state to go back to");
      restore_training_form(*saved, smoothing());
    });
    if (!ranks_.all_same(saved->state.updates))
      fail_together(ranks_, Error(Position{parts_.path}, "is not the same file on all ranks"));
    // The values are copied into the existing arrays, because the optimiser and the workers hold references to these
    // arrays.
    const auto copy = [](ParameterValues<float>& to, const ParameterValues<float>& from) {
      std::copy(from.flat().begin(), from.flat().end(), to.flat().begin());
    };
    copy(run.checkpoint.parameters, saved->checkpoint.parameters);
    for (auto& [name, values] : run.arrays) {
      const auto found = saved->arrays.find(name);
      found == saved->arrays.end() ? values.fill_zero() : copy(values, found->second);
    }
    state() = std::move(saved->state);
    kept_.forget_missing();
  } else {
    state() = {};
    for (auto& [name, values] : run.arrays) values.fill_zero();
    run_together(ranks_, [&] { set_first_parameters(run.checkpoint, abandoned.seed, parts_.pretrained_model); });
    if (smoothing()) std::ranges::copy(run.checkpoint.parameters.flat(), trained().flat().begin());
  }
  step_->take_over();
  carry_over_rollback(abandoned, state());
  find_place_in_epoch();
  shown_sums_ = {};
  shown_progress_ = progress();
  parts_.reporter.event(progress(), "rollback",
                        why + ": back to update " + format_count(state().updates) + " with half the learning rate");
}

std::string Trainer::best_file(Metric metric) const {
  return model_file_variant(parts_.path, "best-" + std::string(enum_name(metric)));
}

/// Forgets each best score whose model file is missing, because the user removed the file or --keep-best is new. The
/// next validation then counts as the best, and its model is kept.
void Trainer::forget_missing_best() {
  const std::vector<Metric>& metrics = parts_.validator->metrics();
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (state().best[i].update < 0) continue;
    const bool missing = is_first() && ::access(best_file(metrics[i]).c_str(), F_OK) != 0;
    if (!ranks_.any(missing)) continue;
    parts_.log.warn(best_file(metrics[i]) + ": is missing; the model of the next validation will be kept there");
    state().best[i].score = 0;
    // best[i].stalled, the number of validations since the best one, keeps its value, because early stopping needs it.
    state().best[i].update = -1;
  }
}

UpdateReport Trainer::make_report(const TrainingProgress& now) {
  UpdateReport report;
  report.progress = now;
  const double tokens = std::max(1.0, static_cast<double>(shown_sums_.tokens));
  report.loss = shown_sums_.loss / tokens;
  report.cross_entropy = shown_sums_.negative_log_likelihood / tokens;
  if (shown_sums_.alignment.queries > 0) report.alignment = shown_sums_.alignment.loss / shown_sums_.alignment.queries;
  report.accuracy = static_cast<double>(shown_sums_.correct) / tokens;
  report.learning_rate = last_learning_rate_;
  report.gradient_norm = last_norm_;
  const double seconds = now.seconds - shown_progress_.seconds;
  report.tokens_per_second = seconds > 0 ? static_cast<double>(shown_sums_.target_tokens) / seconds : 0;
  report.share = after_.share(now);
  const double done = report.share - after_.share(first_progress_);
  report.seconds_left = done > 0 ? (now.seconds - first_progress_.seconds) * (1 - report.share) / done : -1;
  return report;
}

void Trainer::show_report(const TrainingProgress& now) {
  if (shown_sums_.tokens == 0) return;
  parts_.reporter.update(make_report(now));
  shown_sums_ = {};
  shown_progress_ = now;
  try_to_plot();
}

bool Trainer::report_is_due(const TrainingProgress& before, const TrainingProgress& now) const {
  return disp_freq_ ? disp_freq_->due(before, now) : now.seconds - shown_progress_.seconds >= kReportSeconds;
}

/// Tells whether something is due after an update for which the results of all updates must be known.
bool Trainer::is_due(const TrainingProgress& before, const TrainingProgress& now) const {
  return after_.reached(now) || report_is_due(before, now) || (parts_.validator && valid_freq_.due(before, now)) ||
         save_freq_.due(before, now);
}

void Trainer::report_progress(const TrainingProgress& before, const TrainingProgress& now) {
  if (report_is_due(before, now)) {
    show_report(now);
  } else if (is_first() && parts_.log.terminal() && shown_sums_.tokens > 0 &&
             seconds_since(status_shown_) >= kStatusSeconds) {
    parts_.reporter.status(make_report(now));
    status_shown_ = Clock::now();
  }
}

/// Validates the model. Returns false when a signal has ended the validation early: it is then due.
bool Trainer::validate() {
  const auto start = Clock::now();
  const TrainingProgress now = progress();
  const std::vector<Metric>& metrics = parts_.validator->metrics();
  step_->gather_parameters();
  std::optional<ValidationScores> found = parts_.validator->run(parts_.run.checkpoint.parameters, *interrupts_);
  state().validation_due = !found;
  if (!found) return false;
  std::vector<double>& scores = found->scores;
  ranks_.broadcast(std::as_writable_bytes(std::span(scores)));
  const bool finite = found->finite && all_finite<float>(parts_.run.checkpoint.parameters.flat());
  std::vector<bool> better;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    BestScore& best = state().best[i];
    better.push_back(finite && is_better(metrics[i], scores[i], best));
    best.stalled = better[i] ? 0 : best.stalled + 1;
    if (!better[i]) continue;
    best.score = scores[i];
    best.update = state().updates;
    if (options_.keep_best)
      run_on_first(ranks_, [&] { save_checkpoint(best_file(metrics[i]), parts_.run.checkpoint); });
  }
  state().validations.push_back({state().updates, now.epochs, scores});
  parts_.reporter.validation(now, metrics, scores, better, seconds_since(start));
  try_to_plot();
  return true;
}

bool Trainer::stalled() {
  return options_.early_stopping > 0 && !state().best.empty() && state().best[0].stalled >= options_.early_stopping;
}

void Trainer::plot() {
  if (options_.plot.empty() || !is_first()) return;
  if (parts_.compared.empty()) return plot_learning_curve(state(), parts_.path, options_.plot);
  std::vector<std::pair<std::string, const TrainingState*>> trainings;
  for (const auto& [model, other] : parts_.compared) trainings.emplace_back(model, &other);
  trainings.emplace_back(parts_.path, &state());
  plot_comparison(trainings, options_.plot);
}

/// Draws the picture in the middle of a training, which goes on where the picture cannot be written.
void Trainer::try_to_plot() {
  try {
    plot();
    plot_failed_ = false;
  } catch (const Error& error) {
    if (!std::exchange(plot_failed_, true))
      parts_.log.warn(std::string(error.what()) + " (the training goes on, and tries again to draw the picture)");
  }
}

/// Saves the model and the state, with `keep` also as a kept model, or at the end of a training with --average-last the
/// average. Returns false, and saves nothing, when a parameter or a number of the optimiser is not finite. When a
/// signal ends the validation of the average early, the training is saved without the average, as one that is not
/// finished.
bool Trainer::save(bool keep) {
  step_->gather_parameters();
  step_->gather_memory();
  bool finite = all_finite<float>(parts_.run.checkpoint.parameters.flat());
  if (is_first())  // only the first rank has the complete arrays
    for (const auto& [name, values] : parts_.run.arrays) finite = finite && all_finite<float>(values.flat());
  if (ranks_.any(!finite)) return false;
  if (keep) kept_.add(parts_.run.checkpoint);
  kept_.request_last();
  state().seconds = seconds_now();
  bool average = state().finished && options_.average_last > 0 && !state().kept_updates.empty();
  if (average) average = state().finished = publish_average();
  if (!average) {
    state().averaged_models = 0;
    run_on_first(ranks_, [&] { save_checkpoint(parts_.path, parts_.run.checkpoint, state(), parts_.run.arrays); });
    parts_.reporter.event(progress(), "saved",
                          "saved " + parts_.path + " after update " + format_count(state().updates), !state().finished);
  }
  // Old models of --keep-last are removed only after the new state has been saved. A run that is killed earlier goes on
  // from the previous state, which may need these models.
  kept_.remove_old(average);
  step_->take_over();
  return true;
}

/// Writes the average of the last kept models as the model file, together with the arrays that further training needs.
/// Returns false, and writes nothing, when a signal has ended the validation of the average early.
bool Trainer::publish_average() {
  const std::vector<std::string> files = kept_.files_to_average();
  const std::size_t count = files.size();
  const std::string models = std::to_string(count) + (count == 1 ? " saved model" : " saved models");
  std::optional<Checkpoint> average;
  run_on_first(ranks_, [&] { average = average_checkpoints(files); });
  if (parts_.validator) {
    Checkpoint& present = parts_.run.checkpoint;
    ParameterValues<float> own = present.parameters;
    if (average) std::ranges::copy(average->parameters.flat(), present.parameters.flat().begin());
    ranks_.broadcast(std::as_writable_bytes(present.parameters.flat()));
    const std::optional<ValidationScores> found = parts_.validator->run(present.parameters, *interrupts_);
    std::copy(own.flat().begin(), own.flat().end(), present.parameters.flat().begin());
    if (!found) return false;
    const std::vector<double>& scores = found->scores;
    std::string text;
    for (std::size_t i = 0; i < scores.size(); ++i)
      text += std::string(i == 0 ? "" : ", ") + std::string(enum_name(parts_.validator->metrics()[i])) + " " +
              format_score(parts_.validator->metrics()[i], scores[i]);
    parts_.reporter.event(progress(), "average", "average of the last " + models + ": " + text);
  }
  state().averaged_models = static_cast<std::int64_t>(count);
  run_on_first(ranks_, [&] { save_checkpoint(parts_.path, *average, state(), published_arrays(parts_.run)); });
  parts_.reporter.event(progress(), "saved", "saved " + parts_.path + ", the average of the last " + models);
  return true;
}

/// Marks the training as finished when --after is reached or early stopping applies. Returns whether it is finished.
bool Trainer::finish_if_done() {
  const bool reached = after_.reached(progress());
  if (!reached && !stalled()) return false;
  state().finished = true;
  state().finish_reason =
      reached ? "--after " + options_.after + " is reached"
              : "no better " + state().metrics[0] + " in " + std::to_string(options_.early_stopping) + " validations";
  return true;
}

bool Trainer::already_finished() {
  kept_.forget_missing();
  if (options_.keep_best) forget_missing_best();
  const bool saved_as_finished = state().finished;
  state().finished = finish_if_done() && saved_as_finished;
  return state().finished;
}

/// Saves the model and the state. When a parameter or a number of the optimiser is not finite, rolls back to the last
/// saved state and returns false.
bool Trainer::save_or_roll_back(bool keep) {
  if (save(keep)) return true;
  if (options_.on_divergence != OnDivergence::rollback)
    fail("a parameter or a number of the optimiser is not finite after update " + format_count(state().updates) +
         "; not saved (lower --learn-rate)");
  roll_back("a parameter or a number of the optimiser is not finite");
  return false;
}

/// Does what an interrupted run has left undone: the validation that was due, and, if nothing is left to learn, because
/// time is up or the options ask for less, all that belongs to the end of a training. Returns false when a signal has
/// interrupted it again; the file then holds all that the training has reached.
bool Trainer::finish_interrupted() {
  const bool was_due = std::exchange(state().validation_due, false);
  if (was_due && parts_.validator && !validate()) return false;
  if (!finish_if_done()) {
    // A rollback to the file must not forget the validation.
    if (was_due) save_or_roll_back(false);
    return true;
  }
  const auto& validations = state().validations;
  const bool validated = !validations.empty() && validations.back().update == state().updates;
  if (parts_.validator && !validated && !validate()) return false;
  return !save_or_roll_back(true) || state().finished;
}

/// Tells whether a signal has come to any rank.
bool Trainer::interrupted() {
  return ranks_.any(interrupts_->signal() != 0);
}

Trainer::Outcome Trainer::run(const InterruptGuard& interrupts) {
  interrupts_ = &interrupts;
  const bool was_finished = already_finished();
  kept_.request_last();
  if (was_finished) {
    if (kept_.lack_average())
      save(true);
    else
      kept_.remove_old(true);
    if (!state().finished) return Outcome::interrupted;
    plot();
    return Outcome::finished;
  }
  kept_.remove_old(false);
  if (!finish_interrupted()) return Outcome::interrupted;
  while (!state().finished) {
    const TrainingProgress before = progress();
    submit_update();
    tell_time();
    const bool due = interrupted() || is_due(before, progress());
    const Step step = collect_updates(due ? 0 : static_cast<std::size_t>(step_->most_submitted() - 1));
    if (step == Step::rolled_back || step == Step::repeated) continue;
    const TrainingProgress now = progress();
    report_progress(before, now);
    if (!due) continue;
    if (after_.reached(now)) show_report(now);
    if (parts_.validator && (after_.reached(now) || valid_freq_.due(before, now))) validate();
    const bool finished = !state().validation_due && finish_if_done();
    const bool save_due = finished || save_freq_.due(before, now);
    if (!save_due && !interrupted()) continue;
    if (save_or_roll_back(save_due) && !state().finished && interrupted()) return Outcome::interrupted;
  }
  plot();
  parts_.reporter.event(progress(), "finished", "finished: " + state().finish_reason);
  return Outcome::finished;
}

Trainer::Trial Trainer::try_updates(int updates) {
  // The first update, which allocates memory, is not timed.
  Trial trial;
  Clock::time_point start;
  std::int64_t before = 0;
  for (int i = 0; i <= updates; ++i) {
    submit_update();
    const std::size_t left = i == 0 || i == updates ? 0 : static_cast<std::size_t>(step_->most_submitted() - 1);
    while (submitted_.size() > left) {
      submitted_.pop_front();
      const bool applied = step_->collect().applied;
      if (applied)
        ++state().optimizer_step;
      else
        submitted_.clear();
      if (i == 0) continue;
      ++trial.updates;
      trial.not_finite += applied ? 0 : 1;
    }
    if (i > 0) continue;
    start = Clock::now();
    before = state().target_tokens;
  }
  trial.tokens_per_second = static_cast<double>(state().target_tokens - before) / seconds_since(start);
  return trial;
}

}  // namespace heed
