#pragma once

#include <ctime>
#include <string>

namespace heed {

/// Prints a message and ends the process when a library crashes on damaged data, as HDF5's library does on some damaged
/// files. A CrashReport holds the message for the user, and a CrashGuard marks one call of the library:
///
///     const CrashReport report("model.h5: the file is damaged");
///     const CrashGuard guard(&report);
///     call_of_the_library();
///
/// While a CrashReport exists, CrashReport's handler catches SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT. A crash
/// inside a CrashGuard prints the message and ends the process; any other crash goes to the previous handler. An
/// endless loop on the thread that made the CrashReport counts as a crash too: a timer sends SIGVTALRM.
class CrashReport {
 public:
  /// Installs the signal handlers and starts the timer. After a crash, the handler prints the tool's name, `message`
  /// and a line end. `seconds` is the time limit of one guarded call, in seconds of processor time: a call that takes
  /// longer is ended, with the whole process, before twice this time has passed.
  explicit CrashReport(const std::string& message, double seconds = 3);
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;

 private:
  friend class CrashGuard;
  std::string line_;
  timer_t timer_{};
  bool has_timer_ = false;
};

/// Guards one call of a library that damaged data can crash. If the thread crashes while the guard exists (a stack
/// overflow is a crash too), the CrashReport's message is written to stderr, all temporary files are removed, and the
/// process ends with exit status 1. The process cannot continue after a crash, since the library may hold locks and may
/// have damaged the memory. Guards may be nested. Each call of the library needs a CrashGuard of its own.
class CrashGuard {
 public:
  /// Starts to guard the calling thread. `report` must outlive the guard; with `report` nullptr the guard does nothing.
  explicit CrashGuard(const CrashReport* report);
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;

 private:
  const std::string* outer_;
};

}  // namespace heed
