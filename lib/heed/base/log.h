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

/// A line that shows the progress of long work on a terminal and is drawn again and again: "title [###---]  47%  first
/// field  second field".
struct StatusLine {
  struct Field {
    std::string text;
    /// Decides which fields are left out when the status line is too long for the terminal: the field with the highest
    /// rank is left out first.
    int rank;
  };

  std::string title;
  /// The fraction of the work that is done, 0..1, which is shown as a bar and a percentage; nothing when the fraction
  /// is unknown.
  std::optional<double> share;
  std::vector<Field> fields;

  /// Returns the status line as text of at most `width` terminal columns. If not everything fits, the title is cut or
  /// left out first, then the fields are left out, the highest rank first; the percentage is kept longest. The progress
  /// bar takes the columns that remain.
  std::string fit(int width) const;
};

enum class Verbosity { quiet, normal, verbose };

/// Writes a tool's messages to the user, to stderr or to the file of --log. Messages are whole lines, and several
/// threads may write at the same time.
class Log {
 public:
  /// Makes a log on `out` whose lines start with "name: ". `terminal` is the file descriptor of the terminal that `out`
  /// writes to, where status lines are drawn; a negative number means that `out` is not a terminal.
  Log(std::ostream& out, std::string name, Verbosity verbosity = Verbosity::normal, int terminal = -1)
      : out_(&out), name_(std::move(name)), verbosity_(verbosity), terminal_(terminal) {}

  ~Log() { clear_status(); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void info(const std::string& line) { write(Verbosity::normal, "", line); }
  void detail(const std::string& line) { write(Verbosity::verbose, "", line); }
  /// Writes a warning, even when the log is quiet. Warnings tell the user that something has happened to the data that
  /// the user did not ask for.
  void warn(const std::string& line) { write(Verbosity::quiet, "warning: ", line); }
  /// Writes `line` without the tool's name at its beginning, unless the log is quiet.
  void plain(const std::string& line);
  /// Erases the status line and draws `line` in its place, in the present width of the terminal. Does nothing when the
  /// log does not write to a terminal.
  void status(const StatusLine& line);
  void clear_status();
  /// Erases the status line before the tool writes `data`, a part of its output, to the same terminal. status() draws
  /// nothing as long as the last line of the output lacks its line end.
  void before_data(std::string_view data);
  /// Returns the text that info(line) would write. A signal handler writes this text itself, since it must not call
  /// info().
  std::string info_text(const std::string& line) const;

  bool quiet() const { return verbosity_ == Verbosity::quiet; }
  bool verbose() const { return verbosity_ == Verbosity::verbose; }
  bool terminal() const { return terminal_ >= 0; }
  void set_verbosity(Verbosity verbosity) { verbosity_ = verbosity; }
  const std::string& name() const { return name_; }

 private:
  /// Writes text. Where the log's stream throws Error, as that of a file on a full disk, the text and the error go to
  /// stderr, and so does everything after them.
  void put(const std::string& text);
  void write(Verbosity needed, const char* prefix, const std::string& line);
  void erase_status();

  std::ostream* out_;
  std::string name_;
  Verbosity verbosity_;
  int terminal_;
  bool status_shown_ = false, data_line_open_ = false;
  std::mutex mutex_;
};

/// Erases the status line that a Log has drawn on stderr, if any. Signal handlers that end the process call this
/// function.
void erase_status_on_stderr();

/// Shows the progress of long work. On a terminal, Progress draws a status line with a bar, the rate and the time left,
/// ten times a second. In a log file, Progress writes a plain line after each `interval`. When the log is quiet,
/// Progress shows nothing.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  /// The type of a function that returns the fraction of the work that is done, 0..1, or nothing when the fraction is
  /// unknown.
  using Share = std::function<std::optional<double>()>;

  /// Starts to show the progress of `total` units of work. If `total` is 0, the total is unknown, and no remaining time
  /// is shown. `what` is the plural of the unit's name, such as "lines" or "updates".
  Progress(Log& log, std::string task, std::string what, std::int64_t total,
           std::chrono::seconds interval = std::chrono::seconds(10));
  /// Starts to show the progress of work whose total number of units is unknown. Progress calls share() before it
  /// draws, to get the fraction of the work that is done.
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
  // The caller's function that returns the fraction of the work that is done. An empty function when that fraction is
  // computed from total_.
  Share share_;
  Clock::time_point start_, last_;
  std::chrono::milliseconds interval_;
};

/// Returns a duration in seconds as text: "3m 20s", "1h 05m", "45 s", "0.3 s".
std::string format_duration(double seconds);
/// Returns a count with commas between the thousands: 1234567 as "1,234,567".
std::string format_count(std::int64_t count);
/// Returns a count with its noun: "1 line", "2,000 lines".
std::string count_of(std::int64_t count, const std::string& what);

}  // namespace heed
