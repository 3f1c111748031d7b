#include "heed/base/signals.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "heed/base/streams.h"
#include "heed/base/temporary_name.h"
#include "heed/base/thread_team.h"
#include "heed/base/threads.h"

using namespace heed;
namespace fs = std::filesystem;

namespace {

std::string signal_file(const std::string& name) {
  return (fs::temp_directory_path() / ("heed_signals_test_" + std::to_string(::getpid()) + name)).string();
}

/// Returns the status, as waitpid() gives it, of a process that runs `body`. No signal that this test's own parent
/// ignores is ignored in that process.
int status_of(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int number : {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXCPU}) std::signal(number, SIG_DFL);
    body();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("a first interrupt only sets the flag") {
  {
    const InterruptGuard guard;
    CHECK(guard.signal() == 0);
    std::raise(SIGTERM);
    CHECK(guard.signal() == SIGTERM);
  }
  const InterruptGuard again;
  CHECK(again.signal() == 0);
}

TEST_CASE("a first interrupt is acknowledged on stderr before the handler returns, each signal once") {
  const std::string path = signal_file("stderr");
  status_of([&] {
    const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ::dup2(fd, STDERR_FILENO);
    const InterruptGuard guard("train: interrupted\n");
    std::raise(SIGINT);
    ::_exit(0);
  });
  std::ifstream in(path);
  CHECK(std::string{std::istreambuf_iterator<char>(in), {}} == "train: interrupted\n");
  fs::remove(path);
}

TEST_CASE("an interrupt that the parent process has told to be ignored stays ignored") {
  const int status = status_of([] {
    std::signal(SIGINT, SIG_IGN);
    remove_temporary_files_on_signals();
    const InterruptGuard guard;
    std::raise(SIGINT);
    std::raise(SIGINT);
    if (guard.signal() != 0) ::_exit(1);
    std::raise(SIGTERM);
    if (guard.signal() != SIGTERM) ::_exit(2);
  });
  CHECK(status == 0);
}

TEST_CASE("temporary files go with their name, and all of them at a signal that ends the process") {
  const std::string one = signal_file("one"), two = signal_file("two"), kept = signal_file("kept");
  {
    const TemporaryName name(one);
    std::ofstream(one) << "x";
    CHECK(fs::exists(one));
  }
  CHECK(!fs::exists(one));
  for (const int number : {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXCPU}) {
    CAPTURE(number);
    const int status = status_of([&] {
      remove_temporary_files_on_signals();
      const TemporaryName first(one), second(two);
      TemporaryName released(kept);
      for (const std::string& path : {one, two, kept}) std::ofstream(path) << "x";
      released.release();
      std::raise(number);
    });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == number);
    CHECK(!fs::exists(one));
    CHECK(!fs::exists(two));
    CHECK(fs::exists(kept));
    fs::remove(kept);
  }
}

TEST_CASE("the second interrupt ends the process without its temporary files") {
  const std::string path = signal_file("output");
  for (const int number : {SIGINT, SIGTERM}) {
    CAPTURE(number);
    const int status = status_of([&] {
      remove_temporary_files_on_signals();
      const InterruptGuard guard;
      OutputFile out(path);
      out.stream() << "some" << std::flush;
      std::raise(number);
      if (guard.signal() != number) ::_exit(1);
      std::raise(number);
    });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == number);
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::temp_directory_path()))
      CHECK(entry.path().filename().string().find(fs::path(path).filename().string()) == std::string::npos);
  }
}

TEST_CASE("handlers run on a second stack, in each thread that computes") {
  const auto has_second_stack = [] {
    stack_t present{};
    return ::sigaltstack(nullptr, &present) == 0 && !(present.ss_flags & SS_DISABLE);
  };
  const auto on_stack = [](int number) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    return (action.sa_flags & SA_ONSTACK) != 0;
  };
  const int status = status_of([&] {
    remove_temporary_files_on_signals();
    for (const int number : {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXCPU})
      if (!on_stack(number)) ::_exit(1);
    const InterruptGuard guard;
    if (!on_stack(SIGINT) || !on_stack(SIGTERM)) ::_exit(2);
    ThreadPool pool(2);
    std::atomic<int> with_stack = 0;
    pool.run([&](int) { with_stack += has_second_stack(); });
    if (with_stack != 2) ::_exit(3);
    ThreadTeam team(2);
    std::atomic<int> begun = 0;
    with_stack = 0;
    team.run(2, [&](int) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
      with_stack += has_second_stack();
    });
    if (with_stack != 2) ::_exit(4);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("signals that are ignored when a tool starts stay ignored, and a file that is too long is an error") {
  const int status = status_of([] {
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGXFSZ, SIG_DFL);
    remove_temporary_files_on_signals();
    std::raise(SIGHUP);
    std::raise(SIGXFSZ);
  });
  CHECK(status == 0);
}
