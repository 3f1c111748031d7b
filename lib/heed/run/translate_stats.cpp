#include "heed/run/translate_stats.h"

#include <cmath>
#include <cstdio>
#include <string>

#include "heed/base/instruction_set.h"
#include "heed/decode/score_rules.h"

namespace heed {
namespace {

constexpr const char* kNoPrediction = "expected: no prediction for this kind of model";

}  // namespace

std::unique_ptr<StepModel> TranslateStats::step_model() {
  if (!options_.draft_model.empty()) {
    auto speculative = translator_.speculative_step_model(options_.draft_length);
    speculative_.push_back(speculative.get());
    return speculative;
  }
  std::unique_ptr<StepModel> model = translator_.step_model();
  const SearchOptions& search = options_.search;
  const bool plain = search.search == SearchKind::beam && search.beam_groups == 1 && search.coverage_penalty == 0 &&
                     score_rules(search).empty() && !translator_.shortlist() && !translator_.image_input() &&
                     !translator_.gpu();
  if (!options_.stats || !options_.score.empty() || !plain || ranks_.size() > 1) return model;
  auto counted = std::make_unique<CountedStepModel>(std::move(model));
  counted_.push_back(counted.get());
  return counted;
}

void TranslateStats::end_chunk(double seconds, bool alone) {
  translating_ += seconds;
  if (alone) ++alone_;
  if (counted_.empty()) return;
  // The greatest number of elements in chunks_. The last element adds up the counts of all further chunks.
  constexpr std::size_t kMostChunks = 1000;
  if (chunks_.size() < kMostChunks) chunks_.emplace_back(counted_.size());
  for (std::size_t i = 0; i < counted_.size(); ++i) chunks_.back()[i] += counted_[i]->take();
}

void TranslateStats::add_up_ranks() {
  for (const SpeculativeStepModel* model : speculative_) draft_ += model->counts();
  std::int64_t numbers[] = {pieces_, pool_.size(), draft_.sentences, draft_.steps, draft_.proposed, draft_.accepted};
  add_up(ranks_, numbers);
  all_pieces_ = numbers[0];
  all_threads_ = numbers[1];
  draft_ = {numbers[2], numbers[3], numbers[4], numbers[5]};
}

void TranslateStats::note_unused_draft(std::int64_t lines) const {
  if (options_.draft_model.empty() || all_pieces_ == 0 || 2 * draft_.sentences >= lines) return;
  log_.info("the draft model was used for " + format_count(draft_.sentences) + " of " + format_count(lines) +
            " lines: it is for lines that come one at a time and are not longer than it accepts (a file is "
            "translated fastest without --draft-model, in batches)");
}

void TranslateStats::report(std::int64_t lines, double seconds, ThreadTeam* team) {
  const std::string where = translator_.gpu()
                                ? ranks_.size() == 1 ? "cuda:" + std::to_string(*translator_.gpu())
                                                     : std::to_string(ranks_.size()) + " ranks on GPUs"
                                : std::to_string(all_threads_) + " threads" +
                                      (ranks_.size() == 1 ? "" : " on " + std::to_string(ranks_.size()) + " ranks") +
                                      ", " + std::string(instruction_set_name(instruction_set()));
  char text[200];
  std::snprintf(text, sizeof text, "%s lines, %s pieces in %s: %.1f lines/s, %.0f pieces/s, %s",
                format_count(lines).c_str(), format_count(all_pieces_).c_str(), format_duration(seconds).c_str(),
                static_cast<double>(lines) / seconds, static_cast<double>(all_pieces_) / seconds, where.c_str());
  log_.info(text);
  if (!options_.draft_model.empty()) report_draft(lines);
  if (!counted_.empty()) report_expected(seconds, team);
  if (options_.score.empty() && translator_.gpu())
    log_.info("expected: no prediction for a GPU");
  else if (translator_.is_parallel() && options_.score.empty())
    log_.info(kNoPrediction);
}

/// Logs how many of the draft model's guesses were right.
void TranslateStats::report_draft(std::int64_t lines) const {
  if (draft_.sentences == 0) return;
  const auto steps = static_cast<double>(draft_.steps);
  char text[200];
  std::snprintf(text, sizeof text,
                "the draft model was used for %s of %s lines: %s of %s guessed tokens were right; a step of the model "
                "gave %.2f tokens",
                format_count(draft_.sentences).c_str(), format_count(lines).c_str(),
                format_count(draft_.accepted).c_str(), format_count(draft_.proposed).c_str(),
                static_cast<double>(draft_.accepted) / steps + 1);
  log_.info(text);
}

/// Logs the speed that the cost model predicts, and the predicted fraction of time for each kind of work, for
/// comparison with the measured speed.
void TranslateStats::report_expected(double seconds, ThreadTeam* team) {
  const bool alone = team && chunks_.size() <= alone_ * 2;
  TranslationCost cost = translation_cost(translator_, chunks_, pool_, alone ? team : nullptr);
  if (cost.parts.empty()) {
    if (pieces_ > 0) log_.info(kNoPrediction);
    return;
  }
  const double text = seconds - translating_, threads = alone ? 1 : pool_.size();
  double waiting = cost.seconds * threads;
  for (const CostPart& part : cost.parts) waiting -= part.seconds;
  cost.parts.push_back({"waiting for a thread", waiting});
  cost.parts.push_back({"reading, text, writing (as measured)", text * threads});
  const auto pieces = static_cast<double>(pieces_);
  const double expected = cost.seconds + text;
  log_.info("expected " + format_count(std::llround(pieces / expected)) + " pieces/s, of which:");
  for (const CostPart& part : cost.parts)
    log_.info("  " + part.name + " " + describe(part, expected * threads, pieces, "piece"));
}

}  // namespace heed
