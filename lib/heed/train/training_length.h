#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// How much has been trained so far, in each unit in which a TrainingLength may count.
struct TrainingProgress {
  double epochs = 0;
  std::int64_t updates = 0;
  std::int64_t target_tokens = 0;
  double seconds = 0;
};

/// A length of training as the user gives it in an option: 20e (epochs), 100Ku (updates), 1Gt (target tokens), 8h
/// (hours).
class TrainingLength {
 public:
  enum class Unit { epochs, updates, tokens, hours };

  /// Parses a number, optionally followed by K, M or G, and a unit letter (e, u, t or h). Without a unit letter the
  /// number counts updates. Throws UsageError naming `option` when `text` is not a length.
  TrainingLength(const std::string& option, const std::string& text);
  TrainingLength(double count, Unit unit) : count_(count), unit_(unit) {}

  Unit unit() const { return unit_; }
  double count() const { return count_; }

  /// Returns about how many updates this length has, if an epoch has `epoch_updates` updates and `epoch_tokens` target
  /// tokens and training processes `tokens_per_second` target tokens per second. The speed matters only for a length in
  /// hours.
  double updates(std::int64_t epoch_updates, std::int64_t epoch_tokens, double tokens_per_second) const;

  bool reached(const TrainingProgress& progress) const { return measure(progress) >= count_; }
  /// Returns which fraction of the planned training is finished at `progress`, from 0 to 1.
  double share(const TrainingProgress& progress) const;
  /// Returns whether training passed a multiple of this length between `before` and `after`, so that an action repeated
  /// after each such length (saving, validating) is due.
  bool due(const TrainingProgress& before, const TrainingProgress& after) const;

 private:
  double measure(const TrainingProgress& progress) const;

  double count_;
  Unit unit_;
};

}  // namespace heed
