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

/// What a search has asked of its model.
struct DecodingCounts {
  std::int64_t batches = 0, sentences = 0;
  TokenCounts tokens;                          ///< a row of a step is a target token
  std::map<std::int64_t, std::int64_t> steps;  ///< by their number of rows
  std::int64_t k = 1;                          ///< likeliest tokens asked for, at most
  /// The keys of tokens.decoder_pairs, those of a step that several rows have in common counted once.
  std::int64_t decoder_keys = 0;
  std::int64_t most_source = 0, most_keys = 0;  ///< at most: source tokens of a batch, decoder_keys of a step

  DecodingCounts& operator+=(const DecodingCounts& other);
};

/// A step model that counts.
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

  /// What was counted since the last call.
  DecodingCounts take() { return std::exchange(counts_, {}); }

 private:
  /// A position of a hypothesis, or of several that have begun alike.
  struct Position {
    std::int32_t before;
    std::int32_t references;  // by positions behind it and by rows
  };

  void count_step();
  void release(std::int32_t position);

  std::unique_ptr<StepModel> model_;
  DecodingCounts counts_;
  std::vector<std::int64_t> sources_;  // tokens of each row's source
  std::vector<Position> positions_;
  std::vector<std::int32_t> last_;      // of each row, in positions_; -1: none
  std::int64_t length_ = 0, live_ = 0;  // positions that rows have
};

/// What translating takes by a model of its cost, to be set beside what it took: the operations and bytes of what was
/// asked of the model, times what one costs on this machine.
struct TranslationCost {
  double seconds = 0;  ///< by the clock
  std::vector<CostPart> parts;
};

/// `chunks`: what each thread did of the lines that were read at once; threads wait for the slowest. `team`, where
/// given, shared their work, which one thread led. Takes about 0.3 seconds; no line may be translated meanwhile.
TranslationCost translation_cost(Translator& translator, const std::vector<std::vector<DecodingCounts>>& chunks,
                                 ThreadPool& pool, ThreadTeam* team);

}  // namespace heed
