#include "heed/dist/nccl.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#ifdef HEED_EMULATED_GPU
#include "cuda_emulation.h"
#endif
#include "../dist/thread_ranks.h"
#include "heed/run/device_choice.h"
#include "heed/tensor/cuda_device.h"
#include "heed/tensor/device.h"
#include "heed/train/gpu_sum.h"

namespace heed {
namespace {

#ifdef HEED_EMULATED_GPU

/// The library that stands in for NCCL, and reads and writes as the emulated GPU does. load_nccl() finds it by its
/// name, because it is loaded already.
struct FakeNccl {
  FakeNccl() : library(::dlopen(HEED_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(library);
    using Copy = decltype(&emulation::copy);
    reinterpret_cast<void (*)(Copy)>(::dlsym(library, "fake_nccl_copy_by"))(emulation::copy);
  }
  int members() const { return reinterpret_cast<int (*)()>(::dlsym(library, "fake_nccl_members"))(); }
  void* library;
};

TEST_CASE("NCCL is loaded, joins the ranks, and adds up in place") {
  const FakeNccl fake;
  std::string why_not;
  const NcclLibrary* const library = load_nccl(why_not);
  CHECK(why_not.empty());
  REQUIRE(library);
  run_ranks(3, [&](Communicator& ranks) {
    NcclGroup group(*library, ranks);
    CHECK(group.name() == "NCCL 2.28.9");
    CHECK(fake.members() == 3);
    const auto rank = static_cast<float>(ranks.rank());
    std::vector<float> numbers = {rank, 1, 10 * rank};
    for (int i = 0; i < 2; ++i) group.add_up(numbers, nullptr);
    CHECK(numbers == std::vector<float>{9, 9, 90});
    ranks.largest(0);  // waits for all ranks
  });
  CHECK(fake.members() == 0);
}

TEST_CASE("NCCL: what it refuses is an error of all ranks") {
  const FakeNccl fake;
  std::string why_not;
  const NcclLibrary* const library = load_nccl(why_not);
  REQUIRE(library);
  NcclLibrary broken = *library;
  broken.make_id = [](NcclLibrary::Id*) { return 4; };
  run_ranks(2, [&](Communicator& ranks) {
    CHECK(message_of_rank([&] { NcclGroup(broken, ranks); }) ==
          (ranks.rank() == 0 ? "NCCL cannot start: invalid argument" : "-"));
  });
  broken = *library;
  broken.join = [](void**, int, NcclLibrary::Id, int) { return 2; };
  run_ranks(2, [&](Communicator& ranks) {
    CHECK(message_of_rank([&] { NcclGroup(broken, ranks); }) ==
          (ranks.rank() == 0 ? "NCCL cannot join the ranks: unknown result code" : "-"));
  });
}

TEST_CASE("ranks that share a GPU add up by the hosts, and others by NCCL") {
  const FakeNccl fake;
  run_ranks(2, [&](Communicator& ranks) {
    std::ostringstream said;
    Log log(said, "train", Verbosity::normal);
    CHECK(make_gpu_sum(ranks, "one", log)->name() == "the hosts");
    CHECK(make_gpu_sum(ranks, ranks.rank() == 0 ? "one" : "another", log)->name() == "NCCL 2.28.9");
    CHECK(said.str().empty());
  });
}

TEST_CASE("NCCL adds up numbers in the memory of GPUs") {
  const FakeNccl fake;
  run_ranks(2, [&](Communicator& ranks) {
    std::ostringstream said;
    Log log(said, "train", Verbosity::normal);
    CudaDevice gpu(0, Precision::float32);
    const Device device(gpu.context());
    const Tensor<float> numbers = device.arena().tensor<float>({1000});
    device.fill(numbers, ranks.rank() == 0 ? 0.25F : 2.0F);
    const auto sum = make_gpu_sum(ranks, ranks.rank() == 0 ? "one" : "another", log);
    sum->add_up(gpu.context(), numbers.span());
    const Tensor<float> found = device.download(numbers);
    CHECK(std::ranges::all_of(found.span(), [](float number) { return number == 2.25F; }));
  });
}

TEST_CASE("--device with several ranks") {
  run_ranks(2, [&](Communicator& ranks) {
    std::ostringstream messages;
    Log log(messages, "test");
    CHECK(chosen_gpu("cuda:0", ranks, log) == 0);
    CHECK_FALSE(chosen_gpu("cpu", ranks, log));
    const std::string message = message_of_rank([&] { chosen_gpu("auto", ranks, log); });
    CHECK(messages.str().empty());
    CHECK((ranks.rank() == 0 ? message.find("would share a GPU with rank 0") != std::string::npos : message == "-"));
  });
  CHECK(processor_name(0) == "emulated GPU");
}

#endif

}  // namespace
}  // namespace heed
