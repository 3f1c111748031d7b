#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <string>

#include "heed/dist/communicator.h"

namespace heed {

/// The first of the lines that cannot be used, and what is wrong with it. Many threads may call add() at once.
class FirstBadLine {
 public:
  /// The number of no line, which is above that of every line.
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  void add(std::int64_t line, const std::string& error) {
    const std::lock_guard guard(mutex_);
    if (line >= line_) return;
    line_ = line;
    error_ = error;
  }
  /// Takes the first such line of all ranks. Collective.
  void take_first(Communicator& ranks) {
    const std::int64_t first = ranks.smallest(line_);
    if (first == kNone) return;
    for (const std::string& each : ranks.gather(line_ == first ? error_ : ""))
      if (!each.empty()) error_ = each;
    line_ = first;
  }
  void forget() { line_ = kNone, error_.clear(); }

  /// Returns the number of the line, or kNone.
  std::int64_t line() const { return line_; }
  const std::string& error() const { return error_; }

 private:
  std::mutex mutex_;
  std::int64_t line_ = kNone;
  std::string error_;
};

}  // namespace heed
