#include "heed/metrics/edit_rate.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace heed;
using Words = std::vector<std::uint32_t>;

TEST_CASE("edits are insertions, deletions, substitutions and shifts") {
  TranslationEdits edits;
  CHECK(edits.count(Words{1, 2, 3}, Words{1, 2, 3}) == 0);
  CHECK(edits.count(Words{}, Words{1, 2}) == 2);
  CHECK(edits.count(Words{1, 2, 3}, Words{}) == 3);
  CHECK(edits.count(Words{1, 9, 3}, Words{1, 2, 3}) == 1);
  CHECK(edits.count(Words{1, 3}, Words{1, 2, 3}) == 1);
  CHECK(edits.count(Words{4, 5, 6, 1, 2, 3}, Words{1, 2, 3, 4, 5, 6}) == 1);  // one shift of three words
  CHECK(edits.count(Words{3, 4, 1, 2, 9}, Words{1, 2, 3, 4, 5}) == 2);
}

TEST_CASE("sentences of many words take little memory: less than a cell for each pair of words") {
  Words reference(60000);
  for (std::uint32_t i = 0; i < reference.size(); ++i) reference[i] = i;
  Words hypothesis = reference;
  hypothesis[10] = hypothesis[30000] = 70000;
  hypothesis.erase(hypothesis.begin() + 50000);
  std::rotate(hypothesis.begin() + 100, hypothesis.begin() + 103, hypothesis.begin() + 120);
  TranslationEdits edits;
  CHECK(edits.count(hypothesis, reference) == 4);
}

TEST_CASE("shifts are made over 50 words, not more") {
  const auto moved = [](std::uint32_t distance) {
    Words reference(distance + 1), hypothesis;
    for (std::uint32_t i = 0; i <= distance; ++i) reference[i] = i;
    hypothesis = reference;
    std::rotate(hypothesis.begin(), hypothesis.begin() + 1, hypothesis.end());  // moves the first word to the end
    TranslationEdits edits;
    return edits.count(hypothesis, reference);
  };
  CHECK(moved(50) == 1);
  CHECK(moved(51) == 2);
}

TEST_CASE("a very long reference of a short hypothesis is within the beam") {
  TranslationEdits edits;
  Words reference(500);
  for (std::uint32_t i = 0; i < 500; ++i) reference[i] = i;
  CHECK(edits.count(Words{499}, reference) == 499);
  CHECK(edits.count(reference, Words{3}) == 499);
}
