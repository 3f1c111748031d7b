#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "heed/base/thread_team.h"
#include "heed/cost/cost_part.h"
#include "heed/cost/model_work.h"
#include "heed/decode/translator.h"

namespace heed {

/// Counts of the work that a search for translations has asked of its model.
struct DecodingCounts {
  std::int64_t batches = 0, sentences = 0;
  /// Numbers of tokens and (query, key) pairs. Each hypothesis counts as one target token in each decoding step.
  TokenCounts tokens;
  /// How many decoding steps had a number of rows (hypotheses): steps[number of rows] = number of steps.
  std::map<std::int64_t, std::int64_t> steps;
  /// The greatest k of the steps that were asked for the k likeliest next tokens.
  std::int64_t k = 1;
  /// The number of keys that the decoder's self-attention reads. A key that several hypotheses share in a step counts
  /// once, whereas tokens.decoder_pairs counts the key once for each of these hypotheses.
  std::int64_t decoder_keys = 0;
  /// The greatest number of source tokens in a batch, and the greatest number of keys that one decoding step reads.
  std::int64_t most_source = 0, most_keys = 0;

  DecodingCounts& operator+=(const DecodingCounts& other);
};

/// A step model that passes each call to another step model and counts the work.
class CountedStepModel : public StepModel {
 public:
  explicit CountedStepModel(std::unique_ptr<StepModel> model) : model_(std::move(model)) {}

  std::int64_t vocabulary() const override { return model_->vocabulary(); }
  void start(const PackedIds& source) override;
  Tensor<float> step(std::span<const std::int32_t> tokens) override;
  void step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k, float* log_probabilities,
            std::int32_t* ids) override;
  void reorder(std::span<const std::int32_t> parents) override;
  void share_with(ThreadTeam* team) override { model_->share_with(team); }

  /// Returns the counts since the last call of take().
  DecodingCounts take() { return std::exchange(counts_, {}); }

 private:
  /// One position of a hypothesis. Hypotheses that begin alike share their first positions.
  struct Position {
    // The index in positions_ of the preceding position; -1 for the first position.
    std::int32_t before;
    // The number of following positions, plus the number of rows (hypotheses) whose last position is this one. At 0,
    // the position is no longer used.
    std::int32_t references;
  };

  void count_step();
  void release(std::int32_t position);

  std::unique_ptr<StepModel> model_;
  DecodingCounts counts_;
  // The number of source tokens of the sentence that each row (hypothesis) translates.
  std::vector<std::int64_t> sources_;
  std::vector<Position> positions_;
  // The index in positions_ of the last position of each row (hypothesis); -1 before the first step.
  std::vector<std::int32_t> last_;
  // The number of decoding steps of the present batch, and the number of positions that rows still use.
  std::int64_t length_ = 0, live_ = 0;
};

/// The predicted cost of a translation, for comparison with the measured time: the counted operations and bytes,
/// multiplied by the measured cost of one operation or byte on this machine.
struct TranslationCost {
  /// The predicted wall-clock time in seconds.
  double seconds = 0;
  std::vector<CostPart> parts;
};

/// Predicts the cost of the work in `chunks`, which holds the counts of each thread for each chunk of lines; at the end
/// of a chunk, all threads wait for the slowest. When `team` is given, one thread led the decoding and the team shared
/// its work. Returns a cost without parts where a model has no residual_norms(): the time of such a model's kernels is
/// not known. The measurement takes about 0.3 seconds, during which the process must not translate.
TranslationCost translation_cost(Translator& translator, const std::vector<std::vector<DecodingCounts>>& chunks,
                                 ThreadPool& pool, ThreadTeam* team);

}  // namespace heed
