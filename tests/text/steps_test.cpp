#include "heed/text/steps.h"

#include <doctest/doctest.h>

using namespace heed;

TEST_CASE("the mode words separates words by single spaces, the mode none leaves the line alone") {
  CHECK(TextPipeline({.mode = TokenMode::words}).tokenize(" a\tb  c. ") == "a b c.");
  CHECK(TextPipeline({.mode = TokenMode::none}).tokenize(" a\tb  c. ") == " a\tb  c. ");
}
