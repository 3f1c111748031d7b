#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>

namespace heed {

enum class Verbosity { quiet, normal, verbose };

/// Where a tool talks to its user (stderr, or --log FILE): whole lines, safe from several threads.
class Log {
 public:
  /// Lines start with "name: ". `terminal` says that `out` is a terminal (bars are drawn there).
  Log(std::ostream& out, std::string name, Verbosity verbosity = Verbosity::normal, bool terminal = false)
      : out_(out), name_(std::move(name)), verbosity_(verbosity), terminal_(terminal) {}

  void info(const std::string& line) { write(Verbosity::normal, "", line); }
  void detail(const std::string& line) { write(Verbosity::verbose, "", line); }
  /// Warnings are shown even when quiet: something the user did not ask for has happened to their data.
  void warn(const std::string& line) { write(Verbosity::quiet, "warning: ", line); }
  /// A line as it is, without the tool's name; not shown when quiet.
  void plain(const std::string& line);
  /// The one line that is redrawn on a terminal; empty clears it. Nothing elsewhere.
  void status(const std::string& line);

  bool quiet() const { return verbosity_ == Verbosity::quiet; }
  bool verbose() const { return verbosity_ == Verbosity::verbose; }
  bool terminal() const { return terminal_; }
  void set_verbosity(Verbosity verbosity) { verbosity_ = verbosity; }
  const std::string& name() const { return name_; }

 private:
  void write(Verbosity needed, const char* prefix, const std::string& line);
  void clear_status();

  std::ostream& out_;
  std::string name_;
  Verbosity verbosity_;
  bool terminal_;
  bool status_shown_ = false;
  std::mutex mutex_;
};

/// Progress of long work: on a terminal a bar with rate and ETA, redrawn ten times a second; elsewhere a plain line
/// every `interval`; nothing when the log is quiet.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `total` 0: unknown, no ETA. `what` is the unit's plural: "lines", "updates".
  Progress(Log& log, std::string task, std::string what, std::int64_t total,
           std::chrono::seconds interval = std::chrono::seconds(10));
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::int64_t count = 1) { to(done_ + count); }
  void to(std::int64_t done);
  /// Extra text behind the rate (say, the loss).
  void note(std::string text) { note_ = std::move(text); }

 private:
  std::string line(double seconds) const;

  Log& log_;
  std::string task_, what_, note_;
  std::int64_t total_, done_ = 0;
  Clock::time_point start_, last_;
  std::chrono::milliseconds interval_;
};

/// "3m 20s", "1h 05m", "45 s", "0.3 s".
std::string format_duration(double seconds);
/// 1234567 as "1,234,567".
std::string format_count(std::int64_t count);

}  // namespace heed
