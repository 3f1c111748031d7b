#include "heed/base/signals.h"

#include "heed/base/error.h"

namespace heed {
namespace {

// A signal handler can reach nothing but global data.
volatile std::sig_atomic_t caught_signal = 0;

void on_signal(int number) {
  caught_signal = number;
}

void install(int number, struct sigaction* old) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  if (::sigaction(number, &action, old) != 0) throw Error("cannot catch signals: " + errno_text());
}

}  // namespace

InterruptGuard::InterruptGuard() {
  caught_signal = 0;
  install(SIGINT, &old_int_);
  install(SIGTERM, &old_term_);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
}

int InterruptGuard::signal() const {
  return caught_signal;
}

}  // namespace heed
