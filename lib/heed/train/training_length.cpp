#include "heed/train/training_length.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "heed/base/error.h"

namespace heed {
namespace {

// A length outside these bounds is a mistake, or would be lost in rounding.
constexpr double kShortest = 1e-9, kLongest = 1e15;

}  // namespace

TrainingLength::TrainingLength(const std::string& option, const std::string& text) : count_(0), unit_(Unit::updates) {
  std::string number = text;
  const auto take = [&](char letter) {
    if (number.empty() || number.back() != letter) return false;
    number.pop_back();
    return true;
  };
  if (take('e'))
    unit_ = Unit::epochs;
  else if (take('t'))
    unit_ = Unit::tokens;
  else if (take('h'))
    unit_ = Unit::hours;
  else
    take('u');
  const double factor = take('K') ? 1e3 : take('M') ? 1e6 : take('G') ? 1e9 : 1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count_);
  if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(count_) || count_ <= 0)
    throw UsageError(option + " '" + text +
                     "': not an amount of training (a number with e for epochs, u updates, t target tokens or h hours: "
                     "20e, 100Ku, 1Gt, 8h)");
  count_ *= factor;
  if (count_ < kShortest || count_ > kLongest)
    throw UsageError(option + " '" + text + "': the number must be from 1e-9 to 1e15");
}

double TrainingLength::measure(const TrainingProgress& progress) const {
  switch (unit_) {
    case Unit::epochs:
      return progress.epochs;
    case Unit::updates:
      return static_cast<double>(progress.updates);
    case Unit::tokens:
      return static_cast<double>(progress.target_tokens);
    case Unit::hours:
      return progress.seconds / 3600;
  }
  throw Error("internal: unknown unit");
}

double TrainingLength::updates(std::int64_t epoch_updates, std::int64_t epoch_tokens, double tokens_per_second) const {
  const double updates_per_token = static_cast<double>(epoch_updates) / static_cast<double>(epoch_tokens);
  switch (unit_) {
    case Unit::epochs:
      return count_ * static_cast<double>(epoch_updates);
    case Unit::updates:
      return count_;
    case Unit::tokens:
      return count_ * updates_per_token;
    case Unit::hours:
      return count_ * 3600 * tokens_per_second * updates_per_token;
  }
  throw Error("internal: unknown unit");
}

double TrainingLength::share(const TrainingProgress& progress) const {
  return std::clamp(measure(progress) / count_, 0.0, 1.0);
}

bool TrainingLength::due(const TrainingProgress& before, const TrainingProgress& after) const {
  // Epochs are fractions, which are rounded: 0.3 / 0.1 is less than 3.
  const auto times = [&](const TrainingProgress& progress) { return std::floor(measure(progress) / count_ + 1e-9); };
  return times(after) > times(before);
}

}  // namespace heed
