#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <string>

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
