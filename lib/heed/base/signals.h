#pragma once

#include <csignal>
#include <exception>
#include <string>

namespace heed {

/// Installs a tool's signal handlers; tool_main calls this function at the start of the process. The signals that end a
/// process (SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXCPU) still end the process, but the temporary files are
/// removed first. When a file grows beyond the limit of the process (SIGXFSZ), the write fails and is reported like
/// other errors. Signals that the parent process has told the system to ignore (as nohup does) stay ignored.
void remove_temporary_files_on_signals();

/// Lets long work, such as training, end in good order after Ctrl-C. While an InterruptGuard exists, the first SIGINT
/// and the first SIGTERM only set a flag, and the second ends the process as usual. After the first signal, a broken
/// pipe no longer ends the process (SIGPIPE is ignored): the write fails instead. A signal that the parent process has
/// told the system to ignore stays ignored (a shell makes background jobs ignore SIGINT). The destructor restores the
/// earlier handlers. Only one InterruptGuard may exist at a time.
class InterruptGuard {
 public:
  /// Starts to catch SIGINT and SIGTERM. When the first SIGINT or the first SIGTERM comes, the signal handler writes
  /// `notice` to stderr at once.
  explicit InterruptGuard(std::string notice = "");
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Returns the number of the signal (SIGINT or SIGTERM) that was caught, or 0 if none was caught. May be called from
  /// several threads at once.
  int signal() const;
};

/// The exception of work that has changed nothing yet, such as reading a text, and ends early because an InterruptGuard
/// has caught a signal.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace heed
