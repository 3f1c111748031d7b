// Speculative decoding (Leviathan et al. 2023; Stern et al. 2018, blockwise parallel decoding): a small model, the
// draft model, guesses the next tokens of a translation, and the large model computes its scores after all of them in
// one step.
//
// The problem. A translation of one line takes a step of the large model for each token, and each step reads all
// weights of the decoder, which takes longer than to multiply them by the one row. A step with several rows takes
// hardly longer than a step with one.
//
// The idea. Greedy search feeds the likeliest token, which a small model often guesses. The draft model proposes a few
// tokens, one after the other, and one step of the large model computes its scores after each of them. As long as the
// search asks for the tokens that were proposed, its scores are there. When the search asks for another token, the
// scores after the wrong guess are thrown away. The search receives the scores of the large model and nothing else: the
// translation is the same, bit for bit, whatever the draft model proposes.
//
// An example. The search feeds <s>. The draft model proposes "The cat sits"; the large model computes its scores after
// "<s>", "<s> The", "<s> The cat" and "<s> The cat sits" in one step.
//   step(<s>)   the scores after <s> are returned; the likeliest token is The
//   step(The)   was proposed: the scores are there; the likeliest token is cat
//   step(cat)   was proposed: the scores are there; the likeliest token is sat
//   step(sat)   was not proposed: both models forget "sits", and the draft model proposes tokens after "sat"
// One step of the large model gave three tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "heed/decode/step_model.h"

namespace heed {

/// Counts of what a draft model proposed, and of what came of it.
struct DraftCounts {
  std::int64_t sentences = 0;  ///< sentences that were translated with the draft model
  std::int64_t steps = 0;      ///< steps of the large model for these sentences
  std::int64_t proposed = 0;   ///< tokens that the draft model proposed
  std::int64_t accepted = 0;   ///< proposed tokens that the search then fed

  DraftCounts& operator+=(const DraftCounts& other);
};

/// How far a draft model guesses ahead.
struct DraftLimits {
  /// The draft model proposes at most this number of tokens in a step.
  int length = 8;
  /// The draft model proposes a further token only while all tokens that it proposes in the step have at least this
  /// probability together, by its own estimate: scores after a wrong token are computed for nothing.
  double least_probability = 0.2;
  /// The greatest number of tokens in a sequence that both models accept; nothing means that there is no limit. A
  /// source that is longer is translated without the draft model, and so are the tokens of a translation beyond it.
  std::optional<int> longest = std::nullopt;
};

/// A StepModel that gives the scores of one model, bit for bit, and computes them ahead for the tokens that a
/// draft model proposes. It computes ahead only while it has one row, as in greedy search of a batch with one sentence:
/// the rows of larger batches share the reading of the weights already. In other cases the draft model is not used.
class SpeculativeStepModel : public StepModel {
 public:
  /// `draft` has the same vocabularies as `model`.
  SpeculativeStepModel(std::unique_ptr<NetworkStepModel> model, std::unique_ptr<NetworkStepModel> draft,
                       DraftLimits limits);

  std::int64_t vocabulary() const override { return model_->vocabulary(); }
  void start(const PackedIds& source) override;
  Tensor<float> step(std::span<const std::int32_t> tokens) override;
  void step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k, float* log_probabilities,
            std::int32_t* ids) override;
  void reorder(std::span<const std::int32_t> parents) override;
  void share_with(ThreadTeam* team) override;

  const DraftCounts& counts() const { return counts_; }

 private:
  /// The number of likeliest tokens that a step of the draft model returns. Four are enough to find one that is
  /// allowed, because at most three tokens are forbidden.
  static constexpr std::int64_t kDraftBest = 4;

  /// A token that the draft model proposes, and the probability that the draft model gives it.
  struct Guess {
    std::int32_t token;
    double probability;
  };

  bool is_ahead(std::int32_t token, std::int64_t k) const;
  void discard_rejected();
  void stop_speculating();
  void propose(CpuContext& device);
  std::optional<Guess> likeliest() const;

  std::unique_ptr<NetworkStepModel> model_, draft_;
  DraftLimits limits_;
  // Whether the batch has one sentence and the model one row, so that the draft model is used.
  bool speculates_ = false;
  // The tokens that the search has fed, and the tokens that the draft model has been fed.
  std::vector<std::int32_t> fed_, draft_fed_;
  // The chain of tokens that the model was fed in its last step: a token of the search, and the tokens that the draft
  // model proposed after it. The search has fed the first used_ of them.
  std::vector<std::int32_t> chain_;
  std::size_t used_ = 0;
  // The k_ best tokens after each token of chain_, and their log-probabilities, both [chain_.size(), k_].
  std::vector<float> values_;
  std::vector<std::int32_t> ids_;
  std::int64_t k_ = 0;
  // The best next tokens of the draft model, [number of rows, kDraftBest].
  std::vector<float> draft_values_;
  std::vector<std::int32_t> draft_ids_;
  DraftCounts counts_;
};

}  // namespace heed
