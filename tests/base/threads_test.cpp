#include "heed/base/threads.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/thread_team.h"

using namespace heed;

TEST_CASE("slices cover everything once, on boundaries of 16") {
  for (const std::int64_t size : {0, 1, 15, 16, 17, 1000, 4096})
    for (const int parts : {1, 2, 3, 7}) {
      std::int64_t at = 0;
      for (int i = 0; i < parts; ++i) {
        const Slice slice = slice_of(size, parts, i);
        CHECK(slice.begin == at);
        CHECK((slice.begin % 16 == 0 || slice.begin == size));
        at = slice.end;
      }
      CHECK(at == size);
    }
}

TEST_CASE("a pool runs the function once on every thread, round after round") {
  ThreadPool pool(3);
  CHECK(pool.size() == 3);
  std::atomic<int> calls[3] = {};
  for (int round = 0; round < 200; ++round) pool.run([&](int thread) { ++calls[thread]; });
  for (const auto& count : calls) CHECK(count == 200);
}

TEST_CASE("the exception of the lowest thread comes out, and the pool goes on") {
  ThreadPool pool(4);
  CHECK_THROWS_WITH_AS(pool.run([](int thread) {
    if (thread >= 2) throw Error("thread " + std::to_string(thread));
  }),
                       "thread 2", Error);
  std::atomic<int> calls = 0;
  pool.run([&](int) { ++calls; });
  CHECK(calls == 4);
}

TEST_CASE("a team does every piece once before it returns, awake and after a sleep, one piece or many") {
  for (const int size : {1, 2, 5}) {
    ThreadTeam team(size);
    CHECK(team.size() == size);
    for (int round = 0; round < 3000; ++round) {
      const int count = round % 23;
      // The counters need not be atomic, since each piece runs on one thread only.
      std::vector<int> calls(static_cast<std::size_t>(count));
      team.run(count, [&](int i) { ++calls[static_cast<std::size_t>(i)]; });
      for (const int n : calls) REQUIRE(n == 1);
      if (round % 1000 == 999) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

TEST_CASE("an exception of a team's piece comes out when all pieces have ended, and the team goes on") {
  ThreadTeam team(3);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> calls = 0;
    CHECK_THROWS_WITH_AS(team.run(10,
                                  [&](int i) {
                                    ++calls;
                                    if (i == 7) throw Error("piece 7");
                                  }),
                         "piece 7", Error);
    CHECK(calls == 10);
  }
  std::atomic<int> calls = 0;
  team.run(10, [&](int) { ++calls; });
  CHECK(calls == 10);
}

TEST_CASE("threads that the system does not start are an error that says what to do, and the others end") {
  constexpr int kMany = 64, kNotAllowed = 77;
  const auto error_of = [](auto make) -> std::string {
    try {
      make();
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  // A child process runs this test: the limit of threads is for the whole process, and root has none.
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // doctest's handler would report the child's end as that of the tests
    ::alarm(20);                    // a thread that is not joined may also hang
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(kNotAllowed);
    rlimit limit{};
    if (::getrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(1);
    // The limit counts all threads of the user, whose number is not known: it is raised until one more can start.
    for (limit.rlim_cur = 0; limit.rlim_cur < limit.rlim_max; ++limit.rlim_cur) {
      if (::setrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(2);
      if (error_of([] { ThreadPool(2).run([](int) {}); }) == "none") break;
    }
    for (const std::string& error : {error_of([] { ThreadPool(kMany).run([](int) {}); }),
                                     error_of([] { ThreadTeam(kMany).run(1, [](int) {}); })}) {
      if (!error.starts_with("cannot start 64 threads: ")) ::_exit(3);
      if (!error.ends_with(" (lower --threads, or raise the limit that ulimit -u shows)")) ::_exit(4);
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotAllowed) {
    MESSAGE("skipped: root is not limited here, and may not become another user");
    return;
  }
  CHECK(status == 0);
}
