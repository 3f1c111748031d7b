#include "heed/text/bpe/posting_lists.h"

#include <doctest/doctest.h>

#include <vector>

using namespace heed;

namespace {

std::vector<std::uint32_t> read(const PostingLists& lists, const PostingLists::List& list) {
  std::vector<std::uint32_t> places;
  PostingLists::Reader reader(lists, list);
  for (std::uint32_t place = 0; reader.next(place);) places.push_back(place);
  return places;
}

}  // namespace

TEST_CASE("lists keep what was appended, near and far, back and forth, but no number twice in a row") {
  PostingLists lists;
  std::vector<PostingLists::List> many(50);
  std::vector<std::vector<std::uint32_t>> expected(many.size());
  for (int round = 0; round < 3; ++round) {
    std::uint32_t place = 0;
    for (std::uint32_t i = 0; i < 20000; ++i) {
      place = i % 1000 == 999 ? i : place + i % 7 * (i % 50 == 0 ? 100000 : 1);
      const std::size_t list = i % many.size();
      if (expected[list].empty() || expected[list].back() != place) expected[list].push_back(place);
      lists.append(many[list], place);
    }
    for (std::size_t i = 0; i < many.size(); ++i) {
      CHECK(read(lists, many[i]) == expected[i]);
      if (i % 2 != static_cast<std::size_t>(round) % 2) continue;
      lists.clear(many[i]);
      expected[i].clear();
      CHECK(many[i].empty());
    }
  }
  CHECK(read(lists, {}).empty());
  PostingLists::List edges;
  for (const std::uint32_t place : {0u, 0xFFFFFFFEu, 0u, 0u, 127u, 255u}) lists.append(edges, place);
  CHECK(read(lists, edges) == std::vector<std::uint32_t>{0, 0xFFFFFFFE, 0, 127, 255});
}
