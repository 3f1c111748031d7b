#pragma once

#include <ctime>
#include <string>

namespace heed {

/// What is to be said when a library crashes in a CrashGuard. While one lives, crashes (SIGSEGV, SIGBUS, SIGFPE,
/// SIGILL, SIGABRT) are looked at: one inside a guard ends the process in order, see CrashGuard; any other goes to
/// whoever was to handle it before. An endless loop is a crash too, on the thread that made the report (SIGVTALRM).
class CrashReport {
 public:
  /// `message`: without the tool's name and the line end. `seconds`: processor time that no call takes; one that takes
  /// more ends within twice that.
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
