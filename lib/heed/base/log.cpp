#include "heed/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "heed/base/error.h"
#include "heed/base/number_text.h"
#include "heed/base/terminal.h"
#include "heed/base/utf8.h"

namespace heed {

namespace {

// The escape sequence that erases the terminal's row in which the cursor is, and all rows below.
constexpr const char* kErase = "\r\x1b[J";

// True while a status line is shown on stderr. The flag is global, since a signal handler that must erase the status
// line can only reach global data.
std::atomic<bool> status_on_stderr = false;

std::string percentage(double share) {
  return number_text("%3.0f%%", share * 100);
}

std::string bar(double share, int cells) {
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * cells);
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(cells - filled), '-') + "]";
}

}  // namespace

std::string StatusLine::fit(int width) const {
  constexpr int kFewestCells = 8, kMostCells = 24, kShortestTitle = 8;
  std::vector<Field> all = fields;
  if (share) all.insert(all.begin(), {percentage(*share), 0});
  std::vector<std::size_t> by_rank(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) by_rank[i] = i;
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].rank < all[b].rank; });
  constexpr std::string_view kBetween = "  ";
  std::vector<bool> shown(all.size(), false);
  int used = 0;
  for (const std::size_t i : by_rank) {
    const int more = display_width(all[i].text) + (used > 0 ? static_cast<int>(kBetween.size()) : 0);
    if (used + more > width) break;
    shown[i] = true;
    used += more;
  }
  std::string start = visible_text(title);
  // The number of terminal columns that remain for the title, without the space behind the title.
  const int room = width - used - 1;
  if (start.empty() || room < std::min(kShortestTitle, display_width(start)))
    start.clear();
  else
    start = fit_width(start, room) + " ";
  // The number of characters between the brackets of the progress bar. The 3 columns are "[", "]" and the space behind
  // the bar.
  const int cells = std::min(kMostCells, width - used - display_width(start) - 3);
  if (share && cells >= kFewestCells) start += bar(*share, cells) + " ";
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (shown[i]) out.append(out.empty() ? "" : kBetween).append(all[i].text);
  return start + out;
}

/// Erases the status line, which is the last line on the terminal; the cursor is at the start of the status line. If
/// the user has made the terminal narrower, the terminal has wrapped the status line onto further rows below the
/// cursor, and kErase erases these rows too.
void Log::erase_status() {
  if (status_shown_) put(kErase);
  status_shown_ = false;
  if (terminal_ == STDERR_FILENO) status_on_stderr = false;
}

void erase_status_on_stderr() {
  if (status_on_stderr && ::write(STDERR_FILENO, kErase, std::strlen(kErase)) < 0) return;
}

void Log::put(const std::string& text) {
  try {
    *out_ << text << std::flush;
  } catch (const Error& error) {
    out_ = &std::cerr;
    *out_ << name_ << ": warning: " << error.what() << " (all messages come here from now on)\n" << text << std::flush;
  }
}

void Log::write(Verbosity needed, const char* prefix, const std::string& line) {
  if (static_cast<int>(verbosity_) < static_cast<int>(needed)) return;
  const std::lock_guard lock(mutex_);
  erase_status();
  put(name_ + ": " + prefix + line + '\n');
}

std::string Log::info_text(const std::string& line) const {
  return quiet() ? "" : (terminal() ? kErase : "") + name_ + ": " + line + "\n";
}

void Log::plain(const std::string& line) {
  if (quiet()) return;
  const std::lock_guard lock(mutex_);
  erase_status();
  put(line + '\n');
}

void Log::status(const StatusLine& line) {
  if (!terminal() || quiet()) return;
  const std::lock_guard lock(mutex_);
  if (data_line_open_) return;
  // The status line never uses the last column of the terminal: some terminals begin a new row after a character in the
  // last column.
  put(kErase + line.fit(terminal_width(terminal_) - 1) + "\r");
  status_shown_ = true;
  if (terminal_ == STDERR_FILENO) status_on_stderr = true;
}

void Log::clear_status() {
  const std::lock_guard lock(mutex_);
  erase_status();
}

void Log::before_data(std::string_view data) {
  if (data.empty()) return;
  const std::lock_guard lock(mutex_);
  erase_status();
  data_line_open_ = !data.ends_with('\n');
}

namespace {

std::chrono::milliseconds interval_on(const Log& log, std::chrono::seconds elsewhere) {
  return log.terminal() ? std::chrono::milliseconds(100) : std::chrono::milliseconds(elsewhere);
}

}  // namespace

Progress::Progress(Log& log, std::string task, std::string what, std::int64_t total, std::chrono::seconds interval)
    : log_(log),
      task_(std::move(task)),
      what_(std::move(what)),
      total_(total),
      start_(Clock::now()),
      last_(start_),
      interval_(interval_on(log, interval)) {}

Progress::Progress(Log& log, std::string task, std::string what, Share share, std::chrono::seconds interval)
    : Progress(log, std::move(task), std::move(what), 0, interval) {
  share_ = std::move(share);
}

Progress::~Progress() {
  log_.clear_status();
}

void Progress::to(std::int64_t done) {
  done_ = done;
  const auto now = Clock::now();
  if (log_.quiet() || now - last_ < interval_) return;
  last_ = now;
  const StatusLine line = status(std::chrono::duration<double>(now - start_).count());
  if (log_.terminal()) {
    log_.status(line);
  } else {
    log_.plain(plain(line));
  }
}

std::optional<double> Progress::share() const {
  if (share_) return share_();
  if (total_ == 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
}

StatusLine Progress::status(double seconds) const {
  const double rate = seconds > 0 ? static_cast<double>(done_) / seconds : 0;
  StatusLine line{task_, share(), {}};
  line.fields = {{format_count(done_) + " " + what_, 2}, {format_count(std::llround(rate)) + "/s", 3}};
  if (line.share && *line.share > 0 && *line.share < 1)
    line.fields.push_back({format_duration(seconds * (1 - *line.share) / *line.share) + " left", 1});
  return line;
}

/// Returns the fields of a status line as one line of text without a bar, for a log file: "title 47% first field,
/// second field".
std::string Progress::plain(const StatusLine& status) {
  std::string out = status.title + " " + (status.share ? percentage(*status.share) + " " : "");
  for (std::size_t i = 0; i < status.fields.size(); ++i) out += (i == 0 ? "" : ", ") + status.fields[i].text;
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

std::string count_of(std::int64_t count, const std::string& what) {
  return format_count(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace heed
