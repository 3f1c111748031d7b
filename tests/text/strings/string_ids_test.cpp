#include "heed/text/strings/string_ids.h"

#include <doctest/doctest.h>

using namespace heed;

TEST_CASE("strings are numbered as they come, through every growth of the table") {
  StringIds numbers;
  CHECK(numbers.find("a") == kNoId);
  const auto text = [](std::int32_t i) { return i == 7 ? std::string() : std::to_string(i * 7919); };
  for (std::int32_t i = 0; i < 5000; ++i) REQUIRE(numbers.add(text(i)) == i);
  for (std::int32_t i = 0; i < 5000; ++i) {
    REQUIRE(numbers.add(text(i)) == i);
    REQUIRE(numbers.find(text(i)) == i);
    REQUIRE(numbers[i] == text(i));
  }
  CHECK(numbers.size() == 5000);
  CHECK(numbers.find("x") == kNoId);
  CHECK(numbers.add(numbers[3]) == 3);  // the argument is a view into the interner's own memory
}

TEST_CASE("pairs are numbered as they come; the order within a pair counts") {
  PairIds pairs;
  for (std::int32_t i = 0; i < 5000; ++i) REQUIRE(pairs.add(i % 70, i / 70) == i);
  for (std::int32_t i = 0; i < 5000; ++i) {
    REQUIRE(pairs.add(i % 70, i / 70) == i);
    REQUIRE(pairs.first(i) == i % 70);
    REQUIRE(pairs.second(i) == i / 70);
  }
  CHECK(pairs.size() == 5000);
  CHECK(pairs.find(69, 0) == 69);
  CHECK(pairs.find(0, 69) == 69 * 70);
  CHECK(pairs.find(70, 0) == kNoId);
  CHECK(PairIds().find(0, 0) == kNoId);
}
