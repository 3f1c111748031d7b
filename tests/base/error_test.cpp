#include "heed/base/error.h"

#include <doctest/doctest.h>

#include <string>

using namespace heed;

TEST_CASE("control characters in the messages of errors are visible") {
  CHECK(Error(std::string("a\0b\x1b[31m\r\x7f", 10)).what() == std::string("a\u2400b\u241B[31m\u240D\u2421"));
  CHECK(Error("a\tb\nn\u00e9\u00a0\xff").what() == std::string("a\tb\nn\u00e9\u00a0\xff"));
  CHECK(Error({"a\x1b", 2}, std::string("'\0' is no label", 15)).what() ==
        std::string("a\u241B:2: '\u2400' is no label"));
}
