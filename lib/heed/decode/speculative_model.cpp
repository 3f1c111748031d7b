#include "heed/decode/speculative_model.h"

#include <algorithm>
#include <cmath>

#include "heed/decode/hypotheses.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {

DraftCounts& DraftCounts::operator+=(const DraftCounts& other) {
  sentences += other.sentences;
  steps += other.steps;
  proposed += other.proposed;
  accepted += other.accepted;
  return *this;
}

SpeculativeStepModel::SpeculativeStepModel(std::unique_ptr<NetworkStepModel> model,
                                           std::unique_ptr<NetworkStepModel> draft, DraftLimits limits)
    : model_(std::move(model)), draft_(std::move(draft)), limits_(limits) {}

void SpeculativeStepModel::start(const PackedIds& source) {
  model_->start(source);
  speculates_ = source.sequences() == 1 && (!limits_.longest || source.packed().length(0) <= *limits_.longest);
  fed_.clear();
  draft_fed_.clear();
  chain_.clear();
  used_ = 0;
  if (!speculates_) return;
  draft_->start(source);
  ++counts_.sentences;
}

void SpeculativeStepModel::share_with(ThreadTeam* team) {
  model_->share_with(team);
  draft_->share_with(team);
}

Tensor<float> SpeculativeStepModel::step(std::span<const std::int32_t> tokens) {
  stop_speculating();
  return model_->step(tokens);
}

void SpeculativeStepModel::reorder(std::span<const std::int32_t> parents) {
  if (speculates_ && parents.size() == 1) return;  // the only row stays
  stop_speculating();
  model_->reorder(parents);
}

/// Makes the model go back to the tokens that the search has fed: forgets the proposed tokens that the search has not
/// fed.
void SpeculativeStepModel::discard_rejected() {
  const std::int32_t last = static_cast<std::int32_t>(used_) - 1;
  if (chain_.size() > 1) model_->reorder(std::span(&last, 1));
  chain_.clear();
  used_ = 0;
}

/// Gives the rest of the batch to the model alone.
void SpeculativeStepModel::stop_speculating() {
  if (speculates_) discard_rejected();
  speculates_ = false;
}

/// Returns whether the scores after `token` are already computed: `token` is the next token that was proposed, and at
/// least k best tokens were asked for.
bool SpeculativeStepModel::is_ahead(std::int32_t token, std::int64_t k) const {
  return used_ < chain_.size() && chain_[used_] == token && k <= k_;
}

/// Returns the likeliest token after the last token that the draft model was fed. Returns nothing when this token ends
/// the translation: no token follows </s>, so that nothing is to be computed ahead.
std::optional<SpeculativeStepModel::Guess> SpeculativeStepModel::likeliest() const {
  for (std::size_t i = draft_ids_.size() - kDraftBest; i < draft_ids_.size(); ++i) {
    if (is_forbidden(draft_ids_[i])) continue;
    if (draft_ids_[i] == kEndId) break;
    return Guess{draft_ids_[i], std::exp(static_cast<double>(draft_values_[i]))};
  }
  return std::nullopt;
}

/// Appends the tokens that the draft model proposes after the tokens in fed_ to chain_.
void SpeculativeStepModel::propose(CpuContext& device) {
  auto most = static_cast<std::size_t>(limits_.length);
  if (limits_.longest) {
    const auto longest = static_cast<std::size_t>(*limits_.longest);
    most = std::min(most, longest - std::min(longest, fed_.size()));
  }
  if (most == 0) return;
  // The draft model goes back to the tokens that it was fed and that the search fed, too, and is fed those that it
  // lacks, at least the last one.
  const auto both = std::mismatch(fed_.begin(), fed_.end() - 1, draft_fed_.begin(), draft_fed_.end()).first;
  const auto known = static_cast<std::int32_t>(both - fed_.begin());
  if (known < std::ssize(draft_fed_)) draft_->truncate(std::span(&known, 1));
  draft_fed_ = fed_;
  const std::span<const std::int32_t> lacking(fed_.data() + known, fed_.size() - static_cast<std::size_t>(known));
  const auto feed = [&](std::span<const std::int32_t> tokens) {
    const auto rows = static_cast<std::int32_t>(tokens.size());
    draft_values_.resize(tokens.size() * kDraftBest);
    draft_ids_.resize(tokens.size() * kDraftBest);
    draft_->step_chains(tokens, std::span(&rows, 1), device, kDraftBest, draft_values_.data(), draft_ids_.data());
    const std::int32_t last = rows - 1;
    if (rows > 1) draft_->reorder(std::span(&last, 1));
  };
  feed(lacking);
  double joint_probability = 1;
  for (std::size_t i = 0; i < most; ++i) {
    const std::optional<Guess> next = likeliest();
    if (!next) break;
    joint_probability *= next->probability;
    // The negation also stops where a damaged draft model gives NaN.
    if (!(joint_probability >= limits_.least_probability)) break;
    chain_.push_back(next->token);
    if (i + 1 == most) break;
    draft_fed_.push_back(next->token);
    feed(std::span(&draft_fed_.back(), 1));
  }
  counts_.proposed += std::ssize(chain_) - 1;
}

void SpeculativeStepModel::step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k,
                                float* log_probabilities, std::int32_t* ids) {
  if (!speculates_) return model_->step(tokens, device, k, log_probabilities, ids);
  fed_.push_back(tokens[0]);
  if (is_ahead(tokens[0], k)) {
    ++counts_.accepted;
  } else {
    discard_rejected();
    chain_.push_back(tokens[0]);
    propose(device);
    k_ = k;
    values_.resize(chain_.size() * static_cast<std::size_t>(k));
    ids_.resize(values_.size());
    const auto rows = static_cast<std::int32_t>(chain_.size());
    model_->step_chains(chain_, std::span(&rows, 1), device, k, values_.data(), ids_.data());
    ++counts_.steps;
  }
  const auto first = static_cast<std::ptrdiff_t>(used_++) * k_;
  std::copy_n(values_.begin() + first, k, log_probabilities);
  std::copy_n(ids_.begin() + first, k, ids);
}

}  // namespace heed
