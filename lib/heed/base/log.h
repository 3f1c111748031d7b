#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The line that is redrawn on a terminal while long work goes on: "title [###---]  47%  first field  second field".
struct StatusLine {
  struct Field {
    std::string text;
    int rank;  ///< fields of high ranks are left out first
  };

  std::string title;
  std::optional<double> share;  ///< done of the whole work, 0..1; drawn as a bar and a percentage
  std::vector<Field> fields;

  /// Returns the line in at most `width` columns. The percentage is kept longest, then the fields by rank, then the
  /// title, which may be cut; the bar gets what is left.
  std::string fit(int width) const;
};

enum class Verbosity { quiet, normal, verbose };

/// Where a tool talks to its user (stderr, or --log FILE): whole lines, safe from several threads.
class Log {
 public:
  /// Lines start with "name: ". `terminal` is the file descriptor of the terminal that `out` writes to (status lines
  /// are drawn there), or negative where `out` is no terminal.
  Log(std::ostream& out, std::string name, Verbosity verbosity = Verbosity::normal, int terminal = -1)
      : out_(out), name_(std::move(name)), verbosity_(verbosity), terminal_(terminal) {}

  ~Log() { clear_status(); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void info(const std::string& line) { write(Verbosity::normal, "", line); }
  void detail(const std::string& line) { write(Verbosity::verbose, "", line); }
  /// Warnings are shown even when quiet: something the user did not ask for has happened to their data.
  void warn(const std::string& line) { write(Verbosity::quiet, "warning: ", line); }
  /// A line as it is, without the tool's name; not shown when quiet.
  void plain(const std::string& line);
  /// Draws the status line anew, in the terminal's present width. Does nothing where there is no terminal.
  void status(const StatusLine& line);
  void clear_status();
  /// Clears the status line before the tool writes `data` to the same terminal. No status line is drawn until the last
  /// line of the data is complete.
  void before_data(std::string_view data);
  /// Returns what info() would write, for a signal handler that writes it itself.
  std::string info_text(const std::string& line) const;

  bool quiet() const { return verbosity_ == Verbosity::quiet; }
  bool verbose() const { return verbosity_ == Verbosity::verbose; }
  bool terminal() const { return terminal_ >= 0; }
  void set_verbosity(Verbosity verbosity) { verbosity_ = verbosity; }
  const std::string& name() const { return name_; }

 private:
  void write(Verbosity needed, const char* prefix, const std::string& line);
  void erase_status();

  std::ostream& out_;
  std::string name_;
  Verbosity verbosity_;
  int terminal_;
  bool status_shown_ = false, data_line_open_ = false;
  std::mutex mutex_;
};

/// Erases a status line that is on stderr: for signal handlers that end the process.
void erase_status_on_stderr();

/// Progress of long work: on a terminal a bar with rate and ETA, redrawn ten times a second; elsewhere a plain line
/// every `interval`; nothing when the log is quiet.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  /// Returns the share of the work that is done, 0..1, or nothing where that is unknown.
  using Share = std::function<std::optional<double>()>;

  /// `total` 0: unknown, no ETA. `what` is the unit's plural: "lines", "updates".
  Progress(Log& log, std::string task, std::string what, std::int64_t total,
           std::chrono::seconds interval = std::chrono::seconds(10));
  /// For work whose total is unknown: `share` is called at each drawing.
  Progress(Log& log, std::string task, std::string what, Share share,
           std::chrono::seconds interval = std::chrono::seconds(10));
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::int64_t count = 1) { to(done_ + count); }
  void to(std::int64_t done);

 private:
  std::optional<double> share() const;
  StatusLine status(double seconds) const;
  static std::string plain(const StatusLine& status);

  Log& log_;
  std::string task_, what_;
  std::int64_t total_, done_ = 0;
  Share share_;  // empty: by total_
  Clock::time_point start_, last_;
  std::chrono::milliseconds interval_;
};

/// "3m 20s", "1h 05m", "45 s", "0.3 s".
std::string format_duration(double seconds);
/// 1234567 as "1,234,567".
std::string format_count(std::int64_t count);

}  // namespace heed
