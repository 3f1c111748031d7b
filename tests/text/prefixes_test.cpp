#include "heed/text/prefixes.h"

#include <doctest/doctest.h>

using namespace heed;

TEST_CASE("abbreviations keep their full stop always, before a number, or not at all") {
  const Prefixes english("en");
  CHECK(english.find("Mr") == Prefixes::Kind::always);
  CHECK(english.find("No") == Prefixes::Kind::before_number);
  CHECK(english.find("mr") == Prefixes::Kind::none);
  CHECK(english.find("") == Prefixes::Kind::none);
  CHECK(english.find("No#") == Prefixes::Kind::none);
}

TEST_CASE("each language has its own, and one without a list the English ones") {
  CHECK(Prefixes("de").find("bzw") == Prefixes::Kind::always);
  CHECK(Prefixes("de").find("No") == Prefixes::Kind::always);
  CHECK(Prefixes("fr").find("chap") == Prefixes::Kind::always);
  CHECK(Prefixes("fr").find("a") == Prefixes::Kind::none);
  CHECK(Prefixes("pt").find("Art") == Prefixes::Kind::before_number);
  CHECK(has_prefixes("cs"));
  CHECK_FALSE(has_prefixes("xx"));
  CHECK(Prefixes("xx").find("Mr") == Prefixes::Kind::always);
}
