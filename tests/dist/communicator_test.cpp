#include "heed/dist/communicator.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "thread_ranks.h"

using namespace heed;

TEST_CASE("ranks: texts of every length are gathered in order") {
  for (const int size : {1, 2, 5}) {
    CAPTURE(size);
    std::vector<std::vector<std::string>> found(static_cast<std::size_t>(size));
    std::vector<std::string> expected;
    const auto text_of = [](int rank) {
      return rank == 1 ? std::string() : std::string(static_cast<std::size_t>(3 * rank + 1), 'x');
    };
    for (int rank = 0; rank < size; ++rank) expected.push_back(text_of(rank));
    run_ranks(size, [&](Communicator& ranks) {
      found[static_cast<std::size_t>(ranks.rank())] = ranks.gather(text_of(ranks.rank()));
    });
    for (const auto& texts : found) CHECK(texts == expected);
  }
  CHECK(no_other_ranks().gather("alone") == std::vector<std::string>{"alone"});
}

TEST_CASE("ranks: the text of rank 0 is copied to all") {
  for (const std::string text : {"", "a", "a longer text"}) {
    std::vector<std::string> found(3, "own");
    run_ranks(3, [&](Communicator& ranks) {
      std::string& own = found[static_cast<std::size_t>(ranks.rank())];
      if (ranks.rank() == 0) own = text;
      ranks.broadcast_text(own);
    });
    CHECK(found == std::vector<std::string>(3, text));
  }
}

TEST_CASE("ranks: the largest and the smallest number") {
  run_ranks(3, [&](Communicator& ranks) {
    CHECK(ranks.largest(ranks.rank()) == 2);
    CHECK(ranks.smallest(5 - ranks.rank()) == 3);
  });
}

TEST_CASE("ranks: an error of some is told once by rank 0, and ends all") {
  struct Outcome {
    std::string message;
    bool usage = false, other = false;
  };
  const auto run = [](int size, const std::function<void(int)>& work) {
    std::vector<Outcome> out(static_cast<std::size_t>(size));
    run_ranks(size, [&](Communicator& ranks) {
      Outcome& own = out[static_cast<std::size_t>(ranks.rank())];
      try {
        run_together(ranks, [&] { work(ranks.rank()); });
      } catch (const OtherRankFailed&) {
        own.other = true;
      } catch (const UsageError& error) {
        own = {error.what(), true, false};
      } catch (const Error& error) {
        own.message = error.what();
      }
    });
    return out;
  };
  const auto fine = run(3, [](int) {});
  for (const Outcome& each : fine) CHECK((each.message.empty() && !each.other));
  const auto same = run(3, [](int) { throw UsageError("no text"); });
  CHECK((same[0].message == "no text" && same[0].usage));
  CHECK((same[1].other && same[2].other));
  const auto some = run(4, [](int rank) {
    if (rank > 1) throw Error(rank == 2 ? "no file" : "no memory");
  });
  CHECK((some[0].message == "rank 2: no file\nrank 3: no memory" && !some[0].usage));
  CHECK((some[1].other && some[2].other && some[3].other));
}

TEST_CASE("ranks: work on rank 0 alone, and its error") {
  std::vector<int> worked(3), failed(3);
  run_ranks(3, [&](Communicator& ranks) {
    const auto own = static_cast<std::size_t>(ranks.rank());
    run_on_first(ranks, [&] { worked[own] = 1; });
    try {
      run_on_first(ranks, [&] { throw Error("disk full"); });
    } catch (const OtherRankFailed&) {
      failed[own] = 2;
    } catch (const Error& error) {
      failed[own] = std::string(error.what()) == "disk full" ? 1 : 3;
    }
  });
  CHECK(worked == std::vector<int>{1, 0, 0});
  CHECK(failed == std::vector<int>{1, 2, 2});
}

TEST_CASE("ranks: what launchers say in the environment") {
  const auto in = [](const std::vector<std::pair<const char*, const char*>>& variables) {
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
    const std::pair<int, int> out{launched_rank(), launched_processes()};
    for (const auto& [name, value] : variables) ::unsetenv(name);
    return out;
  };
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) ::unsetenv(name);
  CHECK(in({}) == std::pair(0, 1));
  CHECK(in({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}}) == std::pair(3, 4));
  CHECK(in({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}) == std::pair(1, 2));
  CHECK(in({{"PMIX_RANK", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}}) == std::pair(5, 8));
  CHECK(in({{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "5"}}) == std::pair(0, 1));  // srun without PMI
  CHECK(in({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}) == std::pair(0, 1));
}
