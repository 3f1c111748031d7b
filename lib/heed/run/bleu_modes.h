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
  EvalbOptions evalb;
  /// The metrics in the order of the report; each metric occurs once.
  TranslationMetrics metrics;
  /// The index in `metrics` of the metric that the user named first, which --fail-under and --fail-drop look at.
  std::size_t first_metric = 0;
  /// The number of references for each segment (line of the corpus).
  std::size_t references = 1;
  /// The paths of the hypothesis files, one for each system; the baseline is first, if given.
  std::vector<std::string> systems;
  /// The paired test of each system against the first system: "bs" (bootstrap) or "ar" (approximate randomisation).
  std::optional<Resampling> test;
  BleuFormat format = BleuFormat::json;
  int width = 1;
  int threads = 1;

  /// Returns sacreBLEU's signature of a score by `metric`: a text that names all settings that affect the score.
  std::string signature(const TranslationMetric& metric) const;
  /// Returns whether `score` is worse than `limit`, when both are scores by the metric that the user named first.
  bool is_worse(double score, double limit) const {
    return metrics[first_metric]->lower_is_better() ? score > limit : score < limit;
  }
  /// Returns a mistake in a segment with the file, the line and the column where it is. `system` is the number of the
  /// system whose hypothesis was counted.
  Error locate(const SegmentError& error, const SegmentBlock& block, std::size_t segment, std::size_t system) const;
};

/// Counts the scores that --fail-under or --fail-drop does not allow, and decides the exit code of `bleu`.
class Threshold {
 public:
  explicit Threshold(const BleuPlan& plan) : plan_(plan) {}

  /// Returns a message when `score`, by the metric that the user named first, is worse than --fail-under, and counts
  /// the failure; otherwise returns nothing. `whose` returns the beginning of the message.
  std::optional<std::string> check(double score, const std::function<std::string()>& whose);
  /// Counts a score that is not allowed, and keeps `message` when it is the first such message.
  void fail(std::string message);
  /// Returns the exit code of `bleu`: 0, or kBelowThreshold after a failure. Logs the first message after a failure.
  int exit_code(Log& log) const;

 private:
  const BleuPlan& plan_;
  std::int64_t failures_ = 0;
  std::string first_;
};

/// Reads all segments (lines of the corpus) in blocks, calls `work` for blocks on plan.threads threads, and calls
/// `take` for each block in order. A Block is a SegmentBlock with further members for the results of `work`. `idle` is
/// called when the input pauses or fails, after `take` has received all earlier blocks (see PipelineStages).
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

/// A block of segments (lines of the corpus) with the statistics, such as n-gram matches, from which the scores of all
/// systems and metrics are computed. `rows` has the shape [size(), CorpusCounter::width()]; after a mistake in a
/// segment it has only the rows of the segments before that segment.
struct CountedBlock : SegmentBlock {
  std::vector<double> rows;
};

/// Computes the statistics of each segment of a block, such as n-gram matches, for all systems and metrics.
class CorpusCounter {
 public:
  explicit CorpusCounter(const BleuPlan& plan);

  std::size_t width() const { return statistics_.row_width(); }
  /// Fills block.rows. Throws Error when a segment has a mistake, such as a broken tree; block.rows then has only the
  /// segments before it.
  void count(CountedBlock& block, int thread);

 private:
  const BleuPlan& plan_;
  // Holds no statistics; says only where the statistics of each system and metric are in a row.
  SegmentStatistics statistics_;
  // The counter of each thread for each metric: [thread][metric].
  std::vector<std::vector<std::unique_ptr<SegmentCounter>>> counters_;
};

// The modes of `bleu`. Each function reads all segments and writes the report of a mode to `out`.
void score_corpus(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold, Log& log);
void score_by_length(const BleuPlan& plan, Segments& segments, std::ostream& out);
void score_sentences(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold);
void score_d2l(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold);
void score_worst(const BleuPlan& plan, Segments& segments, std::ostream& out);
/// Writes the table that evalb writes: a line for each sentence, the sums and a summary.
void score_evalb_table(const BleuPlan& plan, Segments& segments, std::ostream& out);
/// Writes the line that multi-bleu.perl writes. Returns the exit code: 1, like multi-bleu.perl, without reference text.
int score_multi_bleu(const BleuPlan& plan, Segments& segments, std::ostream& out);

}  // namespace heed
