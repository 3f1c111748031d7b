#include "heed/tensor/arena.h"

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
