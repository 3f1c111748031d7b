#pragma once

#include <csignal>
#include <string>

namespace heed {

/// For the process of a tool, at its start: signals that end it (SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXCPU)
/// end it as before, but remove its temporary files. A file that grows beyond the process's limit (SIGXFSZ) is a failed
/// write, an error like others. Signals that the parent process had told to be ignored (nohup) stay ignored.
void remove_temporary_files_on_signals();

/// While it lives, the first SIGINT and the first SIGTERM only set a flag, so that long work can end in good order; the
/// second ends the process as usual. From the first on, a broken pipe (SIGPIPE) is a failed write. A signal that the
/// parent process had told to be ignored (a shell's background job ignores SIGINT) stays ignored. The earlier handlers
/// come back at the end. Only one guard may live at a time.
class InterruptGuard {
 public:
  /// Each first signal writes `notice` to stderr at once.
  explicit InterruptGuard(std::string notice = "");
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The signal that came, 0 if none.
  int signal() const;
};

}  // namespace heed
