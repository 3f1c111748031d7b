#include "heed/base/crash_guard.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>

#include "heed/base/error.h"
#include "heed/base/handler_stack.h"
#include "heed/base/temporary_name.h"

namespace heed {
namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGVTALRM};

/// The message line that the signal handler writes to stderr when this thread crashes inside a CrashGuard; nullptr
/// while this thread is in no CrashGuard.
thread_local const std::string* current_line = nullptr;
/// `entered` counts the CrashGuards that this thread has entered; `entered_before` is the value of `entered` at the
/// last signal of the timer, which comes at regular intervals. If the two are equal at the next signal, one guarded
/// call has lasted for the whole interval, and the call counts as an endless loop.
thread_local volatile unsigned entered = 0, entered_before = 0;

std::mutex installing;  // guards `reports` and `before`, which threads change when handlers are installed or restored
int reports = 0;        // the number of CrashReport objects that exist
std::array<struct sigaction, kSignals.size()> before;

/// Handles a signal that came while this thread was in no CrashGuard: restores the handler that the process had before,
/// and lets that handler run.
void pass_on(int number, const siginfo_t& info) {
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    if (kSignals[i] == number) ::sigaction(number, &before[i], nullptr);
  // After this handler returns, a faulty instruction runs again and raises the signal by itself. A signal that a
  // process has sent (si_code <= 0) does not come again by itself, so it is raised here.
  if (info.si_code <= 0) std::raise(number);
}

void on_crash(int number, siginfo_t* info, void*) {
  if (number == SIGVTALRM && info->si_code == SI_TIMER) {
    const bool same_call = entered == entered_before;
    entered_before = entered;
    if (!current_line || !same_call) return;
  }
  if (!current_line) return pass_on(number, *info);
  const ssize_t written = ::write(STDERR_FILENO, current_line->data(), current_line->size());
  static_cast<void>(written);
  remove_temporary_files();
  ::_exit(Error::exit_code);
}

/// Makes on_crash() the handler of the signal `number` and stores the previous handler in `old`.
void install(int number, struct sigaction* old) {
  struct sigaction present {};
  ::sigaction(number, nullptr, &present);
  if ((present.sa_flags & SA_SIGINFO) && present.sa_sigaction == on_crash) return;
  *old = present;
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

/// Restores the handler `old` of the signal `number`, unless other code has installed a handler since install(). The
/// handler of the timer's signal (SIGVTALRM) is never removed: the last signal of the timer may still arrive, and
/// without a handler that signal would end the process.
void restore(int number, const struct sigaction& old) {
  struct sigaction present {};
  ::sigaction(number, nullptr, &present);
  if (number != SIGVTALRM && (present.sa_flags & SA_SIGINFO) && present.sa_sigaction == on_crash)
    ::sigaction(number, &old, nullptr);
}

}  // namespace

CrashReport::CrashReport(const std::string& message, double seconds)
    : line_(std::string(program_invocation_short_name) + ": " + message + "\n") {
  {
    const std::lock_guard lock(installing);
    if (reports++ == 0)
      for (std::size_t i = 0; i < kSignals.size(); ++i) install(kSignals[i], &before[i]);
  }
  struct sigevent event {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGVTALRM;
  event._sigev_un._tid = ::gettid();
  has_timer_ = ::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  if (!has_timer_) return;
  timespec interval{};
  interval.tv_sec = static_cast<time_t>(seconds);
  interval.tv_nsec = static_cast<long>((seconds - static_cast<double>(interval.tv_sec)) * 1e9);
  const itimerspec times{interval, interval};
  ::timer_settime(timer_, 0, &times, nullptr);
}

CrashReport::~CrashReport() {
  if (has_timer_) ::timer_delete(timer_);
  const std::lock_guard lock(installing);
  if (--reports > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) restore(kSignals[i], before[i]);
}

CrashGuard::CrashGuard(const CrashReport* report) : outer_(current_line) {
  if (!report) return;
  use_handler_stack();
  entered = entered + 1;
  current_line = &report->line_;
}

CrashGuard::~CrashGuard() {
  current_line = outer_;
}

}  // namespace heed
