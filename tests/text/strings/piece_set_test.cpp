#include "heed/text/strings/piece_set.h"

#include <doctest/doctest.h>

#include "heed/base/error.h"

using namespace heed;

TEST_CASE("a set of pieces is written in hexadecimal digits and read again") {
  PieceSet set(10);
  CHECK(set.text() == "000");
  for (const std::int32_t piece : {0, 5, 7, 9}) set.add(piece);
  CHECK(set.text() == "1a2");
  const PieceSet read = PieceSet::parse("1a2", 10);
  for (std::int32_t piece = 0; piece < 10; ++piece) CHECK(read.contains(piece) == set.contains(piece));
  CHECK(PieceSet(0).text().empty());
}

TEST_CASE("a text that is no set of the vocabulary's pieces is an error") {
  CHECK_THROWS_WITH_AS(PieceSet::parse("1a", 10), "a set of pieces has 2 digits, but the vocabulary has 10 pieces",
                       Error);
  CHECK_THROWS_WITH_AS(PieceSet::parse("1g2", 10), "a set of pieces is not written in hexadecimal digits", Error);
  CHECK_THROWS_WITH_AS(PieceSet::parse("1a4", 10), "a set of pieces has a piece that is not in the vocabulary", Error);
}
