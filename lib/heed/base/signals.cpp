#include "heed/base/signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/handler_stack.h"
#include "heed/base/log.h"
#include "heed/base/temporary_name.h"

namespace heed {
namespace {

// These variables are global, since a signal handler can only reach global data. caught_signal is the number of the
// signal that was caught, or 0.
std::atomic<int> caught_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not wait for a lock");
constexpr std::array kGuarded = {SIGINT, SIGTERM, SIGPIPE};
std::array<struct sigaction, kGuarded.size()> handlers_before;
std::string interrupt_notice;

void install(int number, void (*handler)(int)) {
  use_handler_stack();
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  if (::sigaction(number, &action, nullptr) != 0) throw Error("cannot catch signals: " + errno_text());
}

void on_interrupt(int number) {
  const int error = errno;
  caught_signal = number;
  // Ctrl-C ends all programs of a pipeline, in "train 2>&1 | tee log" also tee, which reads the output of train. The
  // next write would raise SIGPIPE and end train before its work is saved, so SIGPIPE is ignored from now on.
  std::signal(SIGPIPE, SIG_IGN);
  if (::write(STDERR_FILENO, interrupt_notice.data(), interrupt_notice.size()) < 0) {
    // The notice could not be written to stderr. An error message would go to stderr too, so the failure is ignored.
  }
  ::sigaction(number, &handlers_before[number == kGuarded[0] ? 0 : 1], nullptr);
  errno = error;
}

/// Handles a signal that ends the process: removes the temporary files, restores the default action and raises the
/// signal again. The signal is blocked while this handler runs, so that it ends the process when the handler returns.
void on_deadly_signal(int number) {
  erase_status_on_stderr();
  remove_temporary_files();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

void remove_temporary_files_on_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int number : {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXCPU}) {
    struct sigaction inherited {};
    ::sigaction(number, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) install(number, on_deadly_signal);
  }
}

InterruptGuard::InterruptGuard(std::string notice) {
  caught_signal = 0;
  interrupt_notice = std::move(notice);
  for (std::size_t i = 0; i < kGuarded.size(); ++i) {
    ::sigaction(kGuarded[i], nullptr, &handlers_before[i]);
    if (kGuarded[i] != SIGPIPE && handlers_before[i].sa_handler != SIG_IGN) install(kGuarded[i], on_interrupt);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kGuarded.size(); ++i) ::sigaction(kGuarded[i], &handlers_before[i], nullptr);
}

int InterruptGuard::signal() const {
  return caught_signal;
}

}  // namespace heed
