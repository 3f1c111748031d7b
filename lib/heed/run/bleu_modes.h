#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/ordered_pipeline.h"
#include "heed/metrics/resampling.h"
#include "heed/metrics/score_report.h"
#include "heed/run/bleu.h"
#include "heed/run/segments.h"

namespace heed {

/// The exit code when a score is worse than --fail-under or --fail-drop allows.
constexpr int kBelowThreshold = 3;

/// The options of `bleu` after checking, with all defaults filled in.
struct BleuPlan {
  const BleuToolOptions& options;
  BleuOptions bleu;
  TranslationMetrics metrics;        ///< in the order of the report, each metric once
  std::size_t references = 1;        ///< number of references for each segment
  std::vector<std::string> systems;  ///< names of the systems' files; the baseline first, if given
  /// "bs" (bootstrap) or "ar" (approximate randomisation): paired test of each system against the first.
  std::optional<Resampling> test;
  BleuFormat format = BleuFormat::json;
  int width = 1;
  int threads = 1;

  /// Returns sacreBLEU's signature of a score by `metric`.
  std::string signature(const TranslationMetric& metric) const;
  /// Returns whether `score` is worse than `limit` by the first metric.
  bool is_worse(double score, double limit) const {
    return metrics[0]->lower_is_better() ? score > limit : score < limit;
  }
};

/// Collects the scores that --fail-under or --fail-drop does not allow.
class Threshold {
 public:
  explicit Threshold(const BleuPlan& plan) : plan_(plan) {}

  /// Returns a message when `score`, by the first metric, is worse than --fail-under, and counts the failure; otherwise
  /// returns nothing. `whose` returns the beginning of the message.
  std::optional<std::string> check(double score, const std::function<std::string()>& whose);
  /// Counts a failure and keeps the first message.
  void fail(std::string message);
  /// Returns the exit code. Logs the first message when the exit code is not 0.
  int exit_code(Log& log) const;

 private:
  const BleuPlan& plan_;
  std::int64_t failures_ = 0;
  std::string first_;
};

/// Reads all segments in blocks, calls `work` for blocks on the plan's threads, and calls `take` for each block in
/// order. A Block is a SegmentBlock with further members for the results of `work`. `idle` is called as described at
/// PipelineStages.
template <class Block>
void run_segment_pipeline(
    const BleuPlan& plan, Segments& segments, std::function<void(Block&, int thread)> work,
    std::function<void(Block&)> take, std::function<void()> idle = [] {}) {
  OrderedPipeline<Block>(plan.threads, {.read = [&](Block& block) { return segments.read(block); },
                                        .ready = [&] { return segments.ready(); },
                                        .work = std::move(work),
                                        .take = std::move(take),
                                        .idle = std::move(idle)})
      .run();
}

/// A block of segments with the statistics of all systems and metrics: `rows` is [size(), CorpusCounter::width()].
struct CountedBlock : SegmentBlock {
  std::vector<double> rows;
};

/// Computes the statistics of the segments of a block.
class CorpusCounter {
 public:
  explicit CorpusCounter(const BleuPlan& plan);

  std::size_t width() const { return statistics_.row_width(); }
  void count(CountedBlock& block, int thread);

 private:
  const BleuPlan& plan_;
  SegmentStatistics statistics_;                                        // used for the layout of a row only
  std::vector<std::vector<std::unique_ptr<SegmentCounter>>> counters_;  // [thread, metric]
};

// The modes of `bleu`. Each function reads all segments and writes the report of a mode to `out`.
void score_corpus(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold, Log& log);
void score_by_length(const BleuPlan& plan, Segments& segments, std::ostream& out);
void score_sentences(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold);
void score_d2l(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold);
void score_worst(const BleuPlan& plan, Segments& segments, std::ostream& out);
/// Writes the line that multi-bleu.perl writes. Returns the exit code: 1, like multi-bleu.perl, without reference text.
int score_multi_bleu(const BleuPlan& plan, Segments& segments, std::ostream& out);

}  // namespace heed
