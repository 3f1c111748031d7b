#include "heed/run/device_choice.h"

#include <doctest/doctest.h>

#include <sstream>

#include "../dist/thread_ranks.h"
#include "heed/base/error.h"

namespace heed {
namespace {

TEST_CASE("a GPU of its own for each rank") {
  const std::vector<std::string> hosts = {"a", "a", "b"};
  CHECK_NOTHROW(check_gpus_of_ranks(hosts, {"x", "y", "z"}));
  CHECK_THROWS_WITH_AS(check_gpus_of_ranks(hosts, {"x", "y", ""}),
                       "--device auto: rank 2 on b has no GPU that heed can use, but rank 0 on a has one (start ranks "
                       "where there are GPUs, or use --device cpu)",
                       Error);
  CHECK_THROWS_WITH_AS(check_gpus_of_ranks(hosts, {"x", "x", "z"}),
                       "--device auto: rank 1 on a would share a GPU with rank 0 (start one rank for each GPU of a "
                       "machine, or use --device cpu, or --device cuda:N to share one)",
                       Error);
}

TEST_CASE("ranks on CPUs, and a device that is not known") {
  run_ranks(3, [&](Communicator& ranks) {
    std::ostringstream messages;
    Log log(messages, "test");
    CHECK_FALSE(chosen_gpu("cpu", ranks, log));
    CHECK(message_of_rank([&] { chosen_gpu("gpu", ranks, log); }) ==
          (ranks.rank() == 0 ? "--device: 'gpu' is none of auto, cpu and cuda:N (such as cuda:0)" : "-"));
  });
}

}  // namespace
}  // namespace heed
