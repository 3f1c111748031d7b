#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "heed/base/thread_team.h"
#include "heed/cost/cost_part.h"
#include "heed/cost/transformer_work.h"
#include "heed/decode/translator.h"

namespace heed {

/// Counts of the work that a search has asked of its model.
struct DecodingCounts {
  std::int64_t batches = 0, sentences = 0;
  TokenCounts tokens;                          ///< in decoding, a row of a step counts as a target token
  std::map<std::int64_t, std::int64_t> steps;  ///< the number of steps for each number of rows
  std::int64_t k = 1;                          ///< the greatest number of likeliest tokens that a step was asked for
  /// The keys that the decoder's self-attention reads. A key that several rows of a step share counts once, whereas
  /// tokens.decoder_pairs counts the key once for each of these rows.
  std::int64_t decoder_keys = 0;
  std::int64_t most_source = 0, most_keys = 0;  ///< maxima: source tokens of a batch, decoder_keys of a step

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
    // The index of the preceding position; -1: none.
    std::int32_t before;
    std::int32_t references;  // the number of following positions and of rows that refer to this position
  };

  void count_step();
  void release(std::int32_t position);

  std::unique_ptr<StepModel> model_;
  DecodingCounts counts_;
  std::vector<std::int64_t> sources_;  // the number of source tokens of each row
  std::vector<Position> positions_;
  std::vector<std::int32_t> last_;      // the index in positions_ of each row's last position; -1: none
  std::int64_t length_ = 0, live_ = 0;  // number of steps of this batch; number of positions that rows still use
};

/// The predicted cost of a translation, for comparison with the measured time: the counted operations and bytes, times
/// the measured cost of an operation on this machine.
struct TranslationCost {
  double seconds = 0;  ///< predicted wall-clock time
  std::vector<CostPart> parts;
};

/// Predicts the cost of the work in `chunks`, which holds the counts of each thread for each chunk of lines; at the end
/// of a chunk, all threads wait for the slowest. When `team` is given, one thread led the decoding and the team shared
/// its work. The measurement takes about 0.3 seconds, during which the process must not translate.
TranslationCost translation_cost(Translator& translator, const std::vector<std::vector<DecodingCounts>>& chunks,
                                 ThreadPool& pool, ThreadTeam* team);

}  // namespace heed
