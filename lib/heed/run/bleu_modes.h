#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/metrics/resampling.h"
#include "heed/metrics/score_report.h"
#include "heed/run/bleu.h"
#include "heed/run/segments.h"

namespace heed {

constexpr int kBelowThreshold = 3;

/// The options made whole.
struct BleuPlan {
  const BleuToolOptions& options;
  BleuOptions bleu;
  Metrics metrics;                   ///< in the order given, each once
  std::size_t references = 1;        ///< of a segment
  std::vector<std::string> systems;  ///< the baseline first where there is one
  std::optional<Resampling> test;    ///< "bs" or "ar", of several systems against the first
  BleuFormat format = BleuFormat::json;
  int width = 1;
  int threads = 1;

  std::string signature(const TranslationMetric& metric) const;
  /// Whether `score` is worse than `limit` in the first metric.
  bool is_worse(double score, double limit) const {
    return metrics[0]->lower_is_better() ? score > limit : score < limit;
  }
};

/// Remembers scores worse than --fail-under.
class Threshold {
 public:
  explicit Threshold(const BleuPlan& plan) : plan_(plan) {}

  /// What is wrong with a score of the first metric, or nothing.
  std::optional<std::string> check(double score, const std::function<std::string()>& whose);
  void fail(std::string message);
  /// The exit code; says on the log why it is not 0.
  int exit_code(Log& log) const;

 private:
  const BleuPlan& plan_;
  std::int64_t failures_ = 0;
  std::string first_;
};

/// Counts the segments last read on several threads.
class CorpusCounter {
 public:
  explicit CorpusCounter(const BleuPlan& plan);
  ~CorpusCounter();

  /// Segments worth reading at once.
  static constexpr std::size_t kBlock = 2048;
  /// Statistics of all systems and metrics, [segments.size(), width()].
  std::span<const double> count(const Segments& segments);
  std::size_t width() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void score_corpus(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold, Log& log);
void score_by_length(const BleuPlan& plan, Segments& segments, std::ostream& out);
void score_sentences(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold);
void score_d2l(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold);
void score_worst(const BleuPlan& plan, Segments& segments, std::ostream& out);
/// Returns the exit code: 1, as multi-bleu.perl does, where there is no reference text.
int score_multi_bleu(const BleuPlan& plan, Segments& segments, std::ostream& out);

}  // namespace heed
