#pragma once

#include <csignal>

namespace heed {

/// While it lives, the first SIGINT or SIGTERM only sets a flag, so that long work can end in good order; the second
/// ends the process as usual. The handlers of before come back at the end. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The signal that came, 0 if none.
  int signal() const;

 private:
  struct sigaction old_int_, old_term_;
};

}  // namespace heed
