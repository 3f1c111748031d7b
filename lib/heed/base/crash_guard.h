#pragma once

#include <ctime>
#include <string>

namespace heed {

/// Holds the message for a crash of a library. While a CrashReport exists, it handles SIGSEGV, SIGBUS, SIGFPE, SIGILL
/// and SIGABRT. A crash inside a CrashGuard prints the message and ends the process; any other crash goes to the
/// previous handler. An endless loop on the thread that made the report counts as a crash (SIGVTALRM).
class CrashReport {
 public:
  /// `message`: without the tool's name and the line end. `seconds`: the time limit of one call, in processor time. A
  /// call that exceeds the limit ends the process before twice this time has passed.
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

/// While it lives, a crash of this thread, an overflow of its stack too, writes the report's message to stderr, removes
/// temporary files and ends the process with exit status 1: for calls of a library that data can crash, each with a
/// guard of its own. The process cannot go on, since the library may hold locks and have damaged the memory. Guards may
/// be nested.
class CrashGuard {
 public:
  /// The report must outlive the guard; nullptr: the guard does nothing.
  explicit CrashGuard(const CrashReport* report);
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;

 private:
  const std::string* outer_;
};

}  // namespace heed
