#include "heed/decode/score_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/text/strings/vocabulary.h"

namespace heed {

void NextTokens::lower(std::int32_t token, float log_probability) {
  float& score = scores_[static_cast<std::size_t>(token)];
  lost_ += std::exp(static_cast<double>(score - normalizer_)) - std::exp(static_cast<double>(log_probability));
  score = log_probability + normalizer_;
}

void NextTokens::finish() {
  float& pad = scores_[kPadId];
  pad = normalizer_ + static_cast<float>(std::log(std::exp(static_cast<double>(pad - normalizer_)) + lost_));
}

void NoRepeatedNgram::apply(int, std::span<const std::int32_t> history, NextTokens& next) const {
  const std::size_t before = size_ - 1;  // the tokens of an n-gram before its last one
  if (history.size() < size_) return;
  const std::span<const std::int32_t> last = history.last(before);
  for (std::size_t i = 0; i + before < history.size(); ++i)
    if (std::ranges::equal(history.subspan(i, before), last))
      next.lower(history[i + before], -std::numeric_limits<float>::infinity());
}

void RepetitionPenalty::apply(int, std::span<const std::int32_t> history, NextTokens& next) const {
  for (std::size_t i = 0; i < history.size(); ++i)
    if (std::ranges::count(history.first(i), history[i]) == 0)
      next.lower(history[i], factor_ * next.log_probability(history[i]));
}

ScoreRules score_rules(const SearchOptions& options) {
  ScoreRules rules;
  if (options.repetition_penalty > 1) rules.push_back(std::make_unique<RepetitionPenalty>(options.repetition_penalty));
  if (options.no_repeat_ngram_size > 0)
    rules.push_back(std::make_unique<NoRepeatedNgram>(options.no_repeat_ngram_size));
  return rules;
}

void RuledStepModel::start(const PackedIds& source) {
  model_.start(source);
  hypotheses_.clear();
  for (int s = 0; s < source.sequences(); ++s) hypotheses_.push_back({first_ + s, {}});
}

Tensor<float> RuledStepModel::step(std::span<const std::int32_t> tokens) {
  const Tensor<float> scores = model_.step(tokens);
  arena_.reset();
  const Tensor<float> normalizers = log_normalizers(device_, scores);
  for (std::int64_t r = 0; r < scores.rows(); ++r) {
    auto& [sentence, history] = hypotheses_[static_cast<std::size_t>(r)];
    if (const std::int32_t token = tokens[static_cast<std::size_t>(r)]; token != kStartId) history.push_back(token);
    NextTokens next({scores.row(r), static_cast<std::size_t>(scores.columns())}, normalizers.data()[r]);
    for (const ScoreRule* rule : rules_) rule->apply(sentence, history, next);
    next.finish();
  }
  return scores;
}

void RuledStepModel::reorder(std::span<const std::int32_t> parents) {
  model_.reorder(parents);
  std::vector<Row> next;
  for (const std::int32_t parent : parents) next.push_back(hypotheses_[static_cast<std::size_t>(parent)]);
  hypotheses_ = std::move(next);
}

}  // namespace heed
