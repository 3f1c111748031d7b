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

constexpr int kBelowThreshold = 3;

/// The options made whole.
struct BleuPlan {
  const BleuToolOptions& options;
  BleuOptions bleu;
  TranslationMetrics metrics;        ///< in the order given, each once
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

/// Reads all segments, works on blocks of them on the plan's threads and takes the blocks in order. A Block is a
/// SegmentBlock with what `work` finds. `idle`: see PipelineStages.
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

/// Segments with the statistics of all systems and metrics, [size(), CorpusCounter::width()].
struct CountedBlock : SegmentBlock {
  std::vector<double> rows;
};

/// Counts the segments of a block.
class CorpusCounter {
 public:
  explicit CorpusCounter(const BleuPlan& plan);

  std::size_t width() const { return statistics_.row_width(); }
  void count(CountedBlock& block, int thread);

 private:
  const BleuPlan& plan_;
  SegmentStatistics statistics_;                                        // for its layout
  std::vector<std::vector<std::unique_ptr<SegmentCounter>>> counters_;  // [thread, metric]
};

void score_corpus(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold, Log& log);
void score_by_length(const BleuPlan& plan, Segments& segments, std::ostream& out);
void score_sentences(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold);
void score_d2l(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold);
void score_worst(const BleuPlan& plan, Segments& segments, std::ostream& out);
/// Returns the exit code: 1, as multi-bleu.perl does, where there is no reference text.
int score_multi_bleu(const BleuPlan& plan, Segments& segments, std::ostream& out);

}  // namespace heed
