#include "heed/train/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "heed/checkpoint/checkpoint.h"
#include "heed/inspect/plot.h"
#include "heed/train/trainer_options.h"

namespace heed {
namespace {

/// When the loss history has this number of points, neighbouring points are joined in pairs, so that half of the points
/// remain.
constexpr std::size_t kMostPoints = 1024;

/// Joins two neighbouring points of the loss history: `a`, and `b`, which covers the updates after `a`. The loss of the
/// returned point is the mean of both losses, weighted by their numbers of target tokens.
LossPoint joined(const LossPoint& a, const LossPoint& b) {
  const std::int64_t tokens = a.tokens + b.tokens;
  return {
      b.update, b.epoch,
      (a.loss * static_cast<double>(a.tokens) + b.loss * static_cast<double>(b.tokens)) / static_cast<double>(tokens),
      tokens};
}

/// Returns whether the scores of a metric of validations are drawn as cross-entropies. All other metrics are
/// percentages.
bool is_entropy(const std::string& metric) {
  return metric == enum_name(Metric::perplexity) || metric == enum_name(Metric::ce_mean_words);
}

/// Returns the name of a metric that is a percentage, as it stands in a picture.
std::string name_of_score(const std::string& metric) {
  return metric == enum_name(Metric::bleu) ? "BLEU" : metric == enum_name(Metric::chrf) ? "chrF" : metric;
}

/// Returns the scores of metric number i of all validations. Perplexities become their logarithm, the cross-entropy, so
/// that they share an axis with the training loss.
std::vector<Point> validation_points(const TrainingState& state, std::size_t i) {
  const bool perplexity = state.metrics[i] == enum_name(Metric::perplexity);
  std::vector<Point> points;
  for (const ValidationPoint& point : state.validations)
    if (i < point.scores.size())
      points.push_back({static_cast<double>(point.update), perplexity ? std::log(point.scores[i]) : point.scores[i]});
  return points;
}

std::vector<Point> training_points(const TrainingState& state) {
  std::vector<Point> points;
  for (const LossPoint& point : state.history) points.push_back({static_cast<double>(point.update), point.loss});
  return points;
}

constexpr const char* kCrossEntropy = "cross-entropy (nats per token)";

}  // namespace

void add_to_history(TrainingState& state, std::int64_t update, double epoch, double negative_log_likelihood,
                    std::int64_t tokens) {
  LossPoint& open = state.open_point;
  open.update = update;
  open.epoch = epoch;
  open.loss += negative_log_likelihood;
  open.tokens += tokens;
  if (update % state.history_stride != 0) return;
  open.loss /= static_cast<double>(open.tokens);
  state.history.push_back(open);
  open = {};
  if (state.history.size() < kMostPoints) return;
  std::vector<LossPoint> half;
  for (std::size_t i = 0; i + 1 < state.history.size(); i += 2)
    half.push_back(joined(state.history[i], state.history[i + 1]));
  state.history = std::move(half);
  state.history_stride *= 2;
}

void plot_learning_curve(const TrainingState& state, const std::string& title, const std::string& path) {
  Plot plot{.title = title, .x_label = "update", .left_label = kCrossEntropy, .right_label = "", .series = {}};
  plot.series.push_back({.name = "training", .points = training_points(state)});
  bool has_entropy = false;
  for (std::size_t i = 0; i < state.metrics.size(); ++i) {
    const bool entropy = is_entropy(state.metrics[i]);
    if (entropy && std::exchange(has_entropy, true)) continue;
    const std::string score = entropy ? "" : name_of_score(state.metrics[i]);
    if (!entropy) plot.right_label += (plot.right_label.empty() ? "" : ", ") + score;
    plot.series.push_back({.name = entropy ? "validation" : "validation " + score,
                           .points = validation_points(state, i),
                           .right = !entropy,
                           .dots = true});
  }
  if (!plot.right_label.empty() && plot.right_label != "BLEU") plot.right_label += " (%)";
  write_plot(path, plot);
}

std::vector<std::pair<std::string, TrainingState>> load_compared_trainings(const std::vector<std::string>& models) {
  std::vector<std::pair<std::string, TrainingState>> out;
  for (const std::string& model : models) {
    std::optional<TrainingState> state = load_training_state(model);
    if (!state) throw Error(Position{model}, "holds no state of a training that could be drawn (--plot-with)");
    out.emplace_back(model, std::move(*state));
  }
  return out;
}

std::vector<std::string> names_in_plot(const std::vector<std::string>& models) {
  std::vector<std::string> names;
  std::vector<std::filesystem::path> folders;  // those that are not yet in the name
  for (const std::string& model : models) {
    const std::filesystem::path path = std::filesystem::path(model).lexically_normal();
    names.push_back(path.stem());
    folders.push_back(path.parent_path());
  }
  for (bool changed = true; std::exchange(changed, false);) {
    const std::vector<std::string> before = names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (std::ranges::count(before, before[i]) == 1 || !folders[i].has_filename()) continue;
      names[i] = folders[i].filename().string() + "/" + names[i];
      folders[i] = folders[i].parent_path();
      changed = true;
    }
  }
  return names;
}

void plot_comparison(const std::vector<std::pair<std::string, const TrainingState*>>& trainings,
                     const std::string& path) {
  Plot plot{.title = "", .x_label = "update", .left_label = kCrossEntropy, .right_label = "", .series = {}};
  std::vector<std::string> models;
  for (const auto& [model, state] : trainings) models.push_back(model);
  const std::vector<std::string> names = names_in_plot(models);
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    const std::string& name = names[i];
    const TrainingState* const state = trainings[i].second;
    plot.title += (plot.title.empty() ? "" : ", ") + name;
    const std::vector<std::string>& metrics = state->metrics;
    const auto entropy = std::ranges::find_if(metrics, is_entropy);
    PlotSeries series{.name = name, .points = {}};
    if (entropy != metrics.end()) {
      series.points = validation_points(*state, static_cast<std::size_t>(entropy - metrics.begin()));
      series.dots = true;
    } else {
      series.points = training_points(*state);
    }
    plot.series.push_back(std::move(series));
  }
  write_plot(path, plot);
}

}  // namespace heed
