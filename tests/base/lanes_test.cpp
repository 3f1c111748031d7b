#include "heed/base/lanes.h"

#include <doctest/doctest.h>

#include <array>

using namespace heed;

TEST_CASE_TEMPLATE("the first of equal lanes is found", T, std::uint8_t, std::uint16_t, std::uint32_t) {
  using L = Lanes<T>;
  std::array<T, L::kCount + 1> numbers{};
  CHECK(L::first(L::load(numbers.data()) == T{7}) == L::kCount);
  for (std::size_t i = L::kCount; i-- > 0;) {
    numbers[i] = 7;
    CHECK(L::first(L::load(numbers.data()) == T{7}) == i);
    CHECK(L::first(L::load(numbers.data() + 1) == T{7}) == (i == 0 ? 0 : i - 1));
  }
  numbers[0] = static_cast<T>(-1);
  CHECK(L::first(L::load(numbers.data()) > T{7}) == 0);
  CHECK(L::bits(L::load(numbers.data()) == numbers[0]) == (1u << sizeof(T)) - 1);
}
