#include "heed/base/crash_guard.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "heed/base/temporary_name.h"

using namespace heed;

namespace {

struct End {
  int status;  // the status as waitpid() returns it
  std::string said;
};

/// Runs `body` in a process of its own and returns how the process ended, and what it wrote to stderr.
End end_of(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // Removes the handlers of a sanitizer.
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, SIG_DFL);
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    ::dup2(ends[1], STDERR_FILENO);
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  End end{};
  char some[1000];
  for (ssize_t got = 0; (got = ::read(ends[0], some, sizeof some)) > 0;)
    end.said.append(some, static_cast<std::size_t>(got));
  ::close(ends[0]);
  REQUIRE(::waitpid(child, &end.status, 0) == child);
  return end;
}

#ifdef __has_feature  // clang
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#ifdef __SANITIZE_THREAD__
// TSan delivers a signal of another thread, of a timer or of abort() to a handler only when the thread calls one of
// certain functions that may wait, so that a crash does not reach the guard.
constexpr bool kSignalsAreDelayed = true;
#else
constexpr bool kSignalsAreDelayed = false;
#endif

const volatile int one = 1;

/// Calls itself until the stack overflows; the argument must not be 0.
int overflow_the_stack(const volatile int& depth) {
  const volatile int deeper = depth + 1;
  return depth == 0 ? 0 : overflow_the_stack(deeper) + depth;
}

/// Makes a fault that the processor finds before a sanitizer does.
void write_to_forbidden_page() {
  void* page = ::mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile int*>(page) = 1;
}

void fault() {
  std::raise(SIGSEGV);
}

}  // namespace

TEST_CASE("a crash in a guard is an exit with a message, without temporary files" * doctest::skip(kSignalsAreDelayed)) {
  const std::string path = std::filesystem::temp_directory_path() / ("heed_crash_test_" + std::to_string(::getpid()));
  const auto crash = [&](const std::function<void()>& how) {
    return end_of([&] {
      const TemporaryName name(path);
      std::ofstream(path) << "x";
      const CrashReport report("file.h5: is damaged");
      const CrashGuard guard(&report);
      { const CrashGuard inner(&report); }
      how();
    });
  };
  const std::string message = std::string(program_invocation_short_name) + ": file.h5: is damaged\n";
  const auto check = [&](const std::function<void()>& how) {
    const End end = crash(how);
    CHECK(WIFEXITED(end.status));
    CHECK(WEXITSTATUS(end.status) == 1);
    CHECK(end.said == message);
    CHECK(!std::filesystem::exists(path));
  };
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) check([&] { std::raise(number); });
  check([] { std::abort(); });
  check(write_to_forbidden_page);
  check([] { overflow_the_stack(one); });
  check([] {
    std::thread([] {
      const CrashReport report("file.h5: is damaged");
      const CrashGuard guard(&report);
      overflow_the_stack(one);
    }).join();
  });
}

TEST_CASE("a call in a guard that does not end is a crash, and many calls are not" *
          doctest::skip(kSignalsAreDelayed)) {
  const auto spin = [](double seconds) {
    const std::clock_t end = std::clock() + static_cast<std::clock_t>(seconds * CLOCKS_PER_SEC);
    while (std::clock() < end) continue;
  };
  const End endless = end_of([&] {
    const CrashReport report("file.h5: is damaged", 0.05);
    const CrashGuard guard(&report);
    spin(30);
  });
  CHECK(WIFEXITED(endless.status));
  CHECK(WEXITSTATUS(endless.status) == 1);
  CHECK(endless.said.ends_with(": file.h5: is damaged\n"));
  const End fine = end_of([&] {
    {
      const CrashReport report("file.h5: is damaged", 0.05);
      for (int i = 0; i < 30; ++i) {
        const CrashGuard guard(&report);
        spin(0.01);
      }
      spin(0.3);
    }
    spin(0.2);
  });
  CHECK(fine.status == 0);
  CHECK(fine.said.empty());
}

TEST_CASE("crashes outside of guards are what they were") {
  const auto dies = [](const std::function<void()>& body) {
    const End end = end_of(body);
    CHECK(end.said.find("file.h5") == std::string::npos);  // an emulator of a CPU may name the signal
    return WIFSIGNALED(end.status) ? WTERMSIG(end.status) : 0;
  };
  const CrashReport report("file.h5: is damaged");
  CHECK(dies([&] { fault(); }) == SIGSEGV);
  CHECK(dies([&] {
          { const CrashGuard guard(&report); }
          std::abort();
        }) == SIGABRT);
  CHECK(dies([&] {
          const CrashGuard guard(nullptr);
          fault();
        }) == SIGSEGV);
  CHECK(dies([&] {
          const CrashReport own("mine");
          const CrashGuard guard(&own);
          std::thread(write_to_forbidden_page).join();
        }) == SIGSEGV);
  // A handler that was installed before the report is called, and is restored when the report ends.
  CHECK(dies([] {
          std::signal(SIGSEGV, [](int) { ::_exit(0); });
          const CrashReport own("mine");
          fault();
        }) == 0);
  CHECK(dies([] {
          std::signal(SIGFPE, [](int) { ::_exit(0); });
          { const CrashReport own("mine"); }
          std::raise(SIGFPE);
          ::_exit(1);
        }) == 0);
}
