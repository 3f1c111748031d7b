#include "heed/tensor/arena.h"

#include <new>

#include <doctest/doctest.h>

using namespace heed;

TEST_CASE("an arena settles on one block and aligns what it gives") {
  Arena arena;
  for (int step = 0; step < 3; ++step) {
    arena.reset();
    for (int i = 1; i < 2000; i += 7) {
      const auto t = arena.tensor<float>({i, 10});
      REQUIRE(reinterpret_cast<std::uintptr_t>(t.data()) % kMemoryAlignment == 0);
      t[t.size() - 1] = 1;
    }
  }
  const std::size_t settled = arena.reserved();
  arena.reset();
  for (int i = 1; i < 2000; i += 7) arena.tensor<float>({i, 10});
  CHECK(arena.reserved() == settled);
}

TEST_CASE("an arena aligns its tensors as its source says, and takes no more than it needs where memory is scarce") {
  // A source that has less memory left each time: 3 MiB, then 1 MiB, then none.
  static std::size_t left;
  left = std::size_t{4} << 20;
  const MemorySource scarce{[](std::size_t bytes) {
                              if (bytes > left) throw OutOfGpuMemory("full");
                              left -= bytes;
                              return ::operator new(bytes, std::align_val_t(512));
                            },
                            [](void* memory, std::size_t) { ::operator delete(memory, std::align_val_t(512)); }, 512};
  Arena arena(scarce);
  arena.allocate(std::size_t{3} << 20);
  // Half of 3 MiB is more than what is left.
  for (int i = 0; i < 2; ++i) CHECK(reinterpret_cast<std::uintptr_t>(arena.allocate(std::size_t{1} << 18)) % 512 == 0);
  CHECK(arena.reserved() == (std::size_t{3} << 20) + (std::size_t{1} << 19));
  CHECK_THROWS_AS(arena.allocate(std::size_t{1} << 20), OutOfGpuMemory);
}

TEST_CASE("scratch goes back at the end of its scope, also across blocks") {
  Arena arena;
  const auto kept = arena.zeros<int>({100});
  const std::size_t used = arena.used();
  {
    const ArenaScope scope(arena);
    const auto scratch = arena.tensor<int>({10'000'000});
    scratch[9'999'999] = 1;
  }
  CHECK(arena.used() == used);
  CHECK(kept[99] == 0);
}

TEST_CASE("shapes know their size and print themselves") {
  CHECK(Shape({3, 4, 5}).size() == 60);
  CHECK(Shape().size() == 1);
  CHECK(Shape({3, 4}).text() == "[3, 4]");
}
