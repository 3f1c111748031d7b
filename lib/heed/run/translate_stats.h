#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "heed/base/log.h"
#include "heed/base/thread_team.h"
#include "heed/base/threads.h"
#include "heed/cost/translation_cost.h"
#include "heed/decode/speculative_model.h"
#include "heed/decode/translator.h"
#include "heed/dist/communicator.h"
#include "heed/run/translate.h"

namespace heed {

/// What `translate` counts of its work, and reports with --stats: the speed, the use of the draft model, and the speed
/// that the cost model predicts. Work is counted for a prediction only in plain beam search over the whole vocabulary
/// without a draft model and other ranks, the only search whose cost can be predicted.
class TranslateStats {
 public:
  TranslateStats(const TranslateOptions& options, Translator& translator, Communicator& ranks, ThreadPool& pool,
                 Log& log)
      : options_(options), translator_(translator), ranks_(ranks), pool_(pool), log_(log) {}

  /// Returns a step model for one thread, whose work is counted if it is to be reported. The object keeps a pointer to
  /// the step model.
  std::unique_ptr<StepModel> step_model();

  /// Counts target pieces that were written. Many threads may call it at once.
  void add_pieces(std::int64_t pieces) { pieces_ += pieces; }
  /// Forgets the pieces so far, which were written by an earlier job.
  void forget_pieces() { pieces_ = 0; }
  /// Must be called after each chunk of lines has been translated. `seconds` is the time that the chunk took; `alone`
  /// is true if the chunk was a single batch, whose work all threads shared.
  void end_chunk(double seconds, bool alone);

  /// Adds up the counts of all ranks. Collective. Must be called before note_unused_draft() and report().
  void add_up_ranks();
  /// Says so when the draft model was used for less than half of the lines, because the others were translated in
  /// batches of several lines, or are longer than the draft model's learned positions.
  void note_unused_draft(std::int64_t lines) const;
  /// Logs how many lines were translated in how many seconds, and all that was counted. `team` are the threads that
  /// share the work of a single batch; null if there was none.
  void report(std::int64_t lines, double seconds, ThreadTeam* team);

 private:
  void report_draft(std::int64_t lines) const;
  void report_expected(double seconds, ThreadTeam* team);

  const TranslateOptions& options_;
  Translator& translator_;
  Communicator& ranks_;
  ThreadPool& pool_;
  Log& log_;
  std::atomic<std::int64_t> pieces_{0};
  // The step models that use the draft model; empty without --draft-model.
  std::vector<SpeculativeStepModel*> speculative_;
  // The step models that count their work; empty when no work is counted.
  std::vector<CountedStepModel*> counted_;
  // The counted work of each thread in each chunk: [chunk][thread].
  std::vector<std::vector<DecodingCounts>> chunks_;
  // The number of chunks that were a single batch.
  std::size_t alone_ = 0;
  // The number of seconds spent in translating, without reading, text and writing.
  double translating_ = 0;
  // What all ranks have done together.
  std::int64_t all_pieces_ = 0, all_threads_ = 0;
  DraftCounts draft_;
};

}  // namespace heed
