#include "heed/tensor/cuda_memory.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "heed/tensor/cuda_device.h"
#include "heed/tensor/device.h"

namespace heed {
namespace {

TEST_CASE(
    "memory of a GPU: tensors are aligned for cuBLASLt, and too much shared memory is an error that says what to do") {
  CudaDevice device(0, Precision::float32);
  CudaContext& gpu = device.context();
  for (int i = 0; i < 3; ++i)
    CHECK(reinterpret_cast<std::uintptr_t>(gpu.arena.tensor<float>({3}).data()) % kGpuAlignment == 0);
  CHECK_THROWS_WITH_AS(allow_shared_memory(gpu, nullptr, 300 << 10),
                       doctest::Contains("KiB of shared memory for the threads of a block, and a kernel needs 300 KiB: "
                                         "give attention more heads, which makes each of them narrower, or take "
                                         "--device cpu"),
                       Error);
}

/// A number in locked memory, which an emulated GPU writes as late as CUDA allows.
struct LockedNumber {
  LockedNumber() { *number = -1; }
  ~LockedNumber() { kLockedMemory.free(number, sizeof(float)); }
  float* const number = static_cast<float*>(kLockedMemory.allocate(sizeof(float)));
};

TEST_CASE("memory of a GPU: what is copied to locked memory is there after its event, or after the whole stream") {
  CudaDevice device(0, Precision::float32);
  CudaContext& gpu = device.context();
  const Tensor<float> on_gpu = gpu.arena.tensor<float>({1});
  LockedNumber first, second;
  GpuEvent event, unused;
  unused.wait();
  fill_on_gpu(gpu, on_gpu.data(), 1, 3.0F);
  copy_from_gpu(gpu, first.number, on_gpu.data(), sizeof(float));
  event.record(gpu);
  fill_on_gpu(gpu, on_gpu.data(), 1, 4.0F);
  copy_from_gpu(gpu, second.number, on_gpu.data(), sizeof(float));
#ifdef HEED_EMULATED_GPU
  CHECK(*first.number == -1);
#endif
  event.wait();
  CHECK(*first.number == 3);
#ifdef HEED_EMULATED_GPU
  CHECK(*second.number == -1);
#endif
  wait_for_gpu(gpu);
  CHECK(*second.number == 4);
  // Ordinary memory has it at once.
  float ordinary = -1;
  fill_on_gpu(gpu, on_gpu.data(), 1, 5.0F);
  copy_from_gpu(gpu, &ordinary, on_gpu.data(), sizeof(float));
  CHECK(ordinary == 5);
}

TEST_CASE("memory of a GPU: an array of the host may change as soon as it was copied to the GPU") {
  CudaDevice device(0, Precision::float32);
  CudaContext& gpu = device.context();
  // Arrays of all sizes, in all more than the locked memory that they go through, and one that is larger.
  for (const std::int64_t count : {1, 1000, 300'000, 700'001, 5'000'000, 2}) {
    CAPTURE(count);
    std::vector<std::vector<std::int32_t>> expected;
    std::vector<Tensor<std::int32_t>> copies;
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
    for (int i = 0; i < 5; ++i) {
      std::iota(numbers.begin(), numbers.end(), 7 * i);
      expected.push_back(numbers);
      copies.push_back(gpu.arena.tensor<std::int32_t>({count}));
      Device(gpu).put(Tensor<std::int32_t>(numbers.data(), {count}), copies.back());
      std::ranges::fill(numbers, -1);
    }
    for (std::size_t i = 0; i < copies.size(); ++i) {
      Device(gpu).get(copies[i], Tensor<std::int32_t>(numbers.data(), {count}));
      CHECK(numbers == expected[i]);
    }
    gpu.arena.reset();
  }
}

TEST_CASE("memory of a GPU: the same bytes are uploaded once, until the device is reset") {
  CudaDevice device(0, Precision::float32);
  CudaContext& gpu = device.context();
  std::vector<std::int32_t> numbers = {3, 1, 4, 1, 5};
  const auto upload = [&] {
    return static_cast<const std::int32_t*>(upload_bytes(gpu, numbers.data(), 4 * numbers.size()));
  };
  const auto read = [&](const std::int32_t* from) {
    std::vector<std::int32_t> out(numbers.size());
    copy_from_gpu(gpu, out.data(), from, 4 * out.size());
    return out;
  };
  for (int round = 0; round < 3; ++round) {
    const auto* const first = upload();
    const std::vector<std::int32_t> before = numbers;
    numbers[2] = 100 + round;  // the same array with other numbers
    const auto* const second = upload();
    CHECK(second != first);
    CHECK(read(first) == before);
    CHECK(read(second) == numbers);
    CHECK(upload() == second);
    const std::vector<std::int32_t> other = numbers;  // another array with the same numbers
    CHECK(upload_bytes(gpu, other.data(), 4 * other.size()) == second);
    numbers.push_back(0);
    const auto* const longer = upload();
    CHECK(longer != second);
    CHECK(read(longer) == numbers);
    numbers.pop_back();
    Device(gpu).reset();
  }
  CHECK(upload_bytes(gpu, numbers.data(), 0) == upload_bytes(gpu, nullptr, 0));
}

}  // namespace
}  // namespace heed
