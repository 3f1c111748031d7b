#include "heed/train/resume.h"

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

// The names under which TrainingArrays stores the parameters that the optimiser changes and their moving average.
constexpr const char* kTrained = "trained";
constexpr const char* kSmoothed = "smoothed";

std::string describe_config_difference(ModelConfig here, ModelConfig there, Comparison comparison) {
  if (architecture(here) != architecture(there))
    return "the model's architecture is " + std::string(architecture(there)) + " there, " +
           std::string(architecture(here)) + " here";
  const FieldList ours = fields_of(here), theirs = fields_of(there);
  for (std::size_t i = 0; i < ours.all().size(); ++i) {
    if (comparison == Comparison::trained_model && ours.all()[i].info.training_only) continue;
    const std::string a = text_of(ours.all()[i]), b = text_of(theirs.all()[i]);
    if (a != b) return "--" + std::string(ours.all()[i].info.name) + " is " + b + " there, " + a + " here";
  }
  return {};
}

std::string describe_text_difference(const std::string& side, const TextModel& here, const TextModel& there) {
  const TextModelParts ours = here.parts(), theirs = there.parts();
  const std::string begin = "the " + side + " vocabulary ";
  if (ours.pieces.size() != theirs.pieces.size())
    return begin + "has " + std::to_string(theirs.pieces.size()) + " pieces there, " +
           std::to_string(ours.pieces.size()) + " here";
  for (std::size_t i = 0; i < ours.pieces.size(); ++i)
    if (ours.pieces[i] != theirs.pieces[i])
      return begin + "differs: id " + std::to_string(i) + " is '" + theirs.pieces[i] + "' there, '" + ours.pieces[i] +
             "' here";
  if (ours.subword_model != theirs.subword_model) return begin + "differs in its merges";
  if (ours.attributes != theirs.attributes) return begin + "differs in its text steps";
  return {};
}

}  // namespace

std::string describe_text_difference(const Checkpoint& here, const Checkpoint& there) {
  const std::string of_source = describe_text_difference("source", here.source, there.source);
  return of_source.empty() ? describe_text_difference("target", here.target, there.target) : of_source;
}

std::string describe_difference(const Checkpoint& here, const Checkpoint& there, Comparison comparison) {
  std::string out = describe_text_difference(here, there);
  if (out.empty()) out = describe_config_difference(here.model->config(), there.model->config(), comparison);
  return out;
}

std::vector<std::string> check_resumable(const std::string& path, ResumableCheckpoint& saved, const Checkpoint& present,
                                         const std::vector<RunSetting>& settings) {
  const auto fail = [&](const std::string& difference) {
    throw Error(Position{path}, "cannot go on with this training: " + difference +
                                    " (give the same options as before, or name another model with -m)");
  };
  const std::string difference = describe_difference(present, saved.checkpoint, Comparison::training);
  if (!difference.empty()) fail(difference);
  auto& stored = saved.state.settings;
  std::string required, others;
  std::vector<std::string> changes;
  for (const RunSetting& setting : settings) {
    const auto found =
        std::find_if(stored.begin(), stored.end(), [&](const auto& s) { return s.first == setting.name; });
    if (found == stored.end() && setting.of_text) continue;
    const std::string before = found == stored.end() ? setting.default_value : found->second;
    if (before == setting.value) continue;
    std::string& list = setting.required ? required : others;
    list += (list.empty() ? "" : "; ") + setting.name + " is " + before + " there, " + setting.value + " here";
    if (!setting.required && !setting.of_text)
      changes.push_back(setting.name + " was " + before + " and is now " + setting.value);
  }
  if (!required.empty()) fail(required + (others.empty() ? "" : "; ") + others);
  stored.clear();
  for (const RunSetting& setting : settings) stored.emplace_back(setting.name, setting.value);
  return changes;
}

void warn_of_changes(const std::vector<std::string>& changes, Log& log) {
  for (const std::string& change : changes)
    log.warn(change + ": the result will differ from that of an uninterrupted run");
}

void forget_validations(TrainingState& state, const std::string& what, Log& log) {
  if (!state.validations.empty())
    log.warn(what +
             " has changed: the scores of earlier validations are forgotten, and the count of --early-stopping begins "
             "anew");
  state.validations.clear();
  state.best.assign(state.best.size(), {});
}

void carry_over_rollback(TrainingState& abandoned, TrainingState& restored) {
  if (restored.metrics != abandoned.metrics) {
    restored.metrics = std::move(abandoned.metrics);
    restored.best.assign(abandoned.best.size(), {});
  }
  // The abandoned training has every validation of the restored state, except those that it has forgotten.
  restored.validations = std::move(abandoned.validations);
  std::erase_if(restored.validations, [&](const ValidationPoint& point) { return point.update > restored.updates; });
  for (std::size_t i = 0; i < restored.best.size(); ++i) {
    // BestScore::stalled counts the validations after the best one. When the abandoned training reached its best score
    // after the restored state was saved, the restored training has made no validation after the best one: stalled is
    // 0.
    const BestScore& best = abandoned.best[i];
    if (best.update != restored.best[i].update || best.score != restored.best[i].score)
      restored.best[i] = {best.score, best.update, 0};
  }
  restored.seed = abandoned.seed;
  restored.settings = std::move(abandoned.settings);
  restored.skipped_updates = abandoned.skipped_updates;
  restored.consecutive_skips = 0;
  restored.rollbacks = abandoned.rollbacks + 1;
  restored.finished = false;
  restored.validation_due = false;
}

void restore_training_form(ResumableCheckpoint& run, bool smoothing) {
  const auto trained = run.arrays.find(kTrained), smoothed = run.arrays.find(kSmoothed);
  if (smoothing) {
    if (trained == run.arrays.end()) run.arrays.emplace(kTrained, run.checkpoint.parameters);
    if (smoothed != run.arrays.end()) run.checkpoint.parameters = smoothed->second;
  } else if (trained != run.arrays.end()) {
    run.checkpoint.parameters = trained->second;
    run.arrays.erase(trained);
  }
  run.arrays.erase(kSmoothed);
}

ParameterValues<float>& training_parameters(ResumableCheckpoint& run) {
  const auto trained = run.arrays.find(kTrained);
  return trained == run.arrays.end() ? run.checkpoint.parameters : trained->second;
}

std::int64_t scaled_batch(std::int64_t batch, std::int64_t before, std::int64_t now) {
  if (before == now) return std::min(batch, now);
  const double share = static_cast<double>(batch) / static_cast<double>(before);
  return std::min<std::int64_t>(std::llround(share * static_cast<double>(now)), now);
}

TrainingArrays published_arrays(const ResumableCheckpoint& run) {
  TrainingArrays out = run.arrays;
  // With exponential smoothing the array "trained" exists already, and checkpoint.parameters are the smoothed
  // parameters.
  out.emplace(out.contains(kTrained) ? kSmoothed : kTrained, run.checkpoint.parameters);
  return out;
}

}  // namespace heed
