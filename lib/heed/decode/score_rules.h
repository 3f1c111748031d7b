#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/decode/search.h"
#include "heed/decode/step_model.h"
#include "heed/tensor/arena.h"

namespace heed {

/// The log-probabilities of the tokens that may follow a hypothesis, which rules lower.
class NextTokens {
 public:
  /// `scores` are the scores of all tokens, of which `normalizer` is log(sum(exp(score))).
  NextTokens(std::span<float> scores, float normalizer) : scores_(scores), normalizer_(normalizer) {}

  float log_probability(std::int32_t token) const { return scores_[static_cast<std::size_t>(token)] - normalizer_; }
  /// Lowers the log-probability of a token; minus infinity forbids it.
  void lower(std::int32_t token, float log_probability);
  /// Must be called after the last lower(): adds the probability that lower() has taken from tokens to the probability
  /// of `<pad>`, which no search produces. The probabilities then sum to 1 again, and the log-probabilities of the
  /// tokens that no rule has lowered are still those of the model.
  void finish();

 private:
  std::span<float> scores_;
  float normalizer_;
  double lost_ = 0;
};

/// A rule about the tokens that may follow a hypothesis ("logits processor"). As a rule only lowers log-probabilities,
/// the sum of a hypothesis never rises with its length, on which exhaustive search relies.
class ScoreRule {
 public:
  virtual ~ScoreRule() = default;
  /// `sentence` is the index of the source in its batch, and `history` are the tokens of the hypothesis so far.
  virtual void apply(int sentence, std::span<const std::int32_t> history, NextTokens& next) const = 0;
};

using ScoreRules = std::vector<std::unique_ptr<ScoreRule>>;

/// Forbids each token that would make the last `size` tokens of a hypothesis equal to earlier ones (Paulus et al.
/// 2018).
class NoRepeatedNgram : public ScoreRule {
 public:
  explicit NoRepeatedNgram(int size) : size_(static_cast<std::size_t>(size)) {}
  void apply(int sentence, std::span<const std::int32_t> history, NextTokens& next) const override;

 private:
  std::size_t size_;
};

/// Multiplies the log-probabilities of all tokens that a hypothesis has already by `factor`, at least 1: the penalty of
/// CTRL (Keskar et al. 2019), for log-probabilities instead of logits, whose sign would matter.
class RepetitionPenalty : public ScoreRule {
 public:
  explicit RepetitionPenalty(double factor) : factor_(static_cast<float>(factor)) {}
  void apply(int sentence, std::span<const std::int32_t> history, NextTokens& next) const override;

 private:
  float factor_;
};

/// Returns the rules that the options ask for, in the order in which they apply.
ScoreRules score_rules(const SearchOptions& options);

/// A StepModel that applies rules to the scores of another StepModel, one rule after another. Each step computes the
/// scores of the whole vocabulary, because rules need them.
class RuledStepModel : public StepModel {
 public:
  /// `model` and `rules` must outlive this object. If start() gets only a part of the batch for which
  /// the rules were made, `first` is the index within the batch of the first source of that part.
  RuledStepModel(StepModel& model, const std::vector<const ScoreRule*>& rules, int first = 0)
      : model_(model), rules_(rules), first_(first), device_{arena_} {}
  using StepModel::step;

  std::int64_t vocabulary() const override { return model_.vocabulary(); }
  void start(const PackedIds& source) override;
  Tensor<float> step(std::span<const std::int32_t> tokens) override;
  void reorder(std::span<const std::int32_t> parents) override;
  void share_with(ThreadTeam* team) override { model_.share_with(team); }

 private:
  StepModel& model_;
  std::vector<const ScoreRule*> rules_;
  int first_;
  Arena arena_;
  CpuContext device_;
  /// A hypothesis: the index of its source, and its tokens without <s>.
  struct Row {
    int sentence = 0;
    std::vector<std::int32_t> history;
  };
  std::vector<Row> hypotheses_;
};

}  // namespace heed
