#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// How much has been trained, in every unit in which a TrainingLength may count.
struct TrainingProgress {
  double epochs = 0;
  std::int64_t updates = 0;
  std::int64_t target_tokens = 0;
  double seconds = 0;
};

/// A length of training as options give it: 20e epochs, 100Ku updates, 1Gt target tokens, 8h hours.
class TrainingLength {
 public:
  enum class Unit { epochs, updates, tokens, hours };

  /// Parses a number (K, M and G allowed) and a unit letter; updates without one. `option` is for the message of the
  /// UsageError.
  TrainingLength(const std::string& option, const std::string& text);
  TrainingLength(double count, Unit unit) : count_(count), unit_(unit) {}

  Unit unit() const { return unit_; }
  double count() const { return count_; }

  /// Returns about how many updates this takes where an epoch has `epoch_updates` updates and `epoch_tokens` target
  /// tokens, and `tokens_per_second` of them are trained on (only hours depend on the speed).
  double updates(std::int64_t epoch_updates, std::int64_t epoch_tokens, double tokens_per_second) const;

  bool reached(const TrainingProgress& progress) const { return measure(progress) >= count_; }
  /// The share that is done, 0 to 1.
  double share(const TrainingProgress& progress) const;
  /// Whether a multiple of this lies behind `before` and not behind `after`: it is due again.
  bool due(const TrainingProgress& before, const TrainingProgress& after) const;

 private:
  double measure(const TrainingProgress& progress) const;

  double count_;
  Unit unit_;
};

}  // namespace heed
