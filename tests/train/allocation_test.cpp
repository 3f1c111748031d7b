#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "heed/ops/gemm/gemm.h"
#include "heed/train/update_step.h"
#include "small_run.h"

// Counts every allocation of this program, libraries included, while `counting` is true.
namespace {
std::atomic<bool> counting = false;
std::atomic<long> allocations = 0;

void* allocate(std::size_t size, std::size_t alignment) {
  if (counting) ++allocations;
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<std::size_t>(size, 1)) != 0)
    throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t size) {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new[](std::size_t size) {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

using namespace heed;

namespace {

/// Returns whether the library's matrix products allocate heap memory themselves, as oneDNN 3 does with SSE2.
bool products_allocate() {
  constexpr std::int64_t kSize = 48;
  const std::vector<float> a(kSize * kSize, 1);
  std::vector<float> c(a.size());
  Arena arena;
  CpuContext device{arena, Precision::float32};
  const auto multiply = [&] {
    gemm(device, kSize, kSize, kSize, 1.0F, {a.data(), kSize}, {a.data(), kSize}, 0.0F, c.data(), kSize);
  };
  multiply();  // the library initialises itself
  counting = true;
  multiply();
  counting = false;
  return allocations.exchange(0) > 0;
}

}  // namespace

TEST_CASE("the steady state of an update takes nothing from the heap") {
  if (products_allocate()) {
    MESSAGE("skipped: the products of " << gemm_library() << " take memory from the heap");
    return;
  }
  const Transformer<float> model(small_config());
  ParameterValues<float> parameters(model.layout()), smoothed(model.layout());
  parameters.initialise(3);
  const ParallelCorpus corpus = mirrored(300);
  ThreadPool pool(2);
  GradientWorkers workers(model.layout(), loss_of(model), Precision::float32, pool);
  NamedParameterValues memory;
  const Optimizer optimizer({.clip_norm = 1}, model.layout(), memory);
  CpuUpdateStep step(workers, {optimizer, memory, parameters, &smoothed, 1e-4}, pool);
  EpochBatches batches(corpus, {.target_tokens = 500}, 1);
  batches.prepare(0);
  std::vector<Shard> shards;
  const auto epoch = [&] {
    for (std::int64_t i = 0; i < batches.size(); ++i) {
      shards.clear();
      cut_into_shards(corpus, batches[i], shards);
      step.run(corpus, shards, {.label_smoothing = 0.1}, {1, static_cast<std::uint64_t>(i)}, i + 1, 1e-3);
    }
  };
  epoch();
  epoch();
  counting = true;
  epoch();
  counting = false;
  CHECK(allocations == 0);
}
