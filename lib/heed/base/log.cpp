#include "heed/base/log.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace heed {

void Log::clear_status() {
  if (status_shown_) out_ << "\r\x1b[K";
  status_shown_ = false;
}

void Log::write(Verbosity needed, const char* prefix, const std::string& line) {
  if (static_cast<int>(verbosity_) < static_cast<int>(needed)) return;
  const std::lock_guard lock(mutex_);
  clear_status();
  out_ << name_ << ": " << prefix << line << '\n' << std::flush;
}

void Log::plain(const std::string& line) {
  if (quiet()) return;
  const std::lock_guard lock(mutex_);
  clear_status();
  out_ << line << '\n' << std::flush;
}

void Log::status(const std::string& line) {
  if (!terminal_ || quiet()) return;
  const std::lock_guard lock(mutex_);
  clear_status();
  out_ << line << std::flush;
  status_shown_ = !line.empty();
}

Progress::Progress(Log& log, std::string task, std::string what, std::int64_t total, std::chrono::seconds interval)
    : log_(log),
      task_(std::move(task)),
      what_(std::move(what)),
      total_(total),
      start_(Clock::now()),
      last_(start_),
      interval_(log.terminal() ? std::chrono::milliseconds(100) : std::chrono::milliseconds(interval)) {}

Progress::~Progress() {
  log_.status("");
}

void Progress::to(std::int64_t done) {
  done_ = done;
  const auto now = Clock::now();
  if (log_.quiet() || now - last_ < interval_) return;
  last_ = now;
  const std::string text = line(std::chrono::duration<double>(now - start_).count());
  if (log_.terminal()) {
    log_.status(text);
  } else {
    log_.plain(text);
  }
}

std::string Progress::line(double seconds) const {
  const double rate = seconds > 0 ? static_cast<double>(done_) / seconds : 0;
  std::string out = task_ + " ";
  if (total_ > 0) {
    constexpr int kWidth = 24;
    const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    const int filled = static_cast<int>(share * kWidth);
    if (log_.terminal()) {
      out += "[";
      for (int i = 0; i < kWidth; ++i) out += i < filled ? "#" : "-";
      out += "] ";
    }
    char percent[16];
    std::snprintf(percent, sizeof percent, "%3.0f%% ", share * 100);
    out += percent;
  }
  out += format_count(done_) + " " + what_ + ", " + format_count(std::llround(rate)) + "/s";
  if (total_ > done_ && rate > 0) out += ", " + format_duration(static_cast<double>(total_ - done_) / rate) + " left";
  if (!note_.empty()) out += ", " + note_;
  return out;
}

std::string format_duration(double seconds) {
  char out[48];
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (seconds < 9.95) {
    std::snprintf(out, sizeof out, "%.1f s", seconds);
  } else if (whole < 60) {
    std::snprintf(out, sizeof out, "%lld s", whole);
  } else if (whole < 3600) {
    std::snprintf(out, sizeof out, "%lldm %02llds", whole / 60, whole % 60);
  } else {
    std::snprintf(out, sizeof out, "%lldh %02lldm", whole / 3600, whole % 3600 / 60);
  }
  return out;
}

std::string format_count(std::int64_t count) {
  std::string digits = std::to_string(count < 0 ? -count : count);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return count < 0 ? "-" + digits : digits;
}

}  // namespace heed
