#include "heed/text/moses/prefixes.h"

#include <doctest/doctest.h>

#include <string>

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

TEST_CASE("every language of Moses has a list, with initials of its alphabet and abbreviations of its own") {
  for (const char* code : {"en", "de", "fr", "cs", "es", "it", "pt", "nl", "pl", "ro", "ru", "sv",  "fi",
                           "hu", "el", "lv", "lt", "sk", "sl", "ga", "is", "ca", "ta", "zh", "yue", "tdt"}) {
    CAPTURE(code);
    CHECK(has_prefixes(code));
    if (std::string(code) != "cs") CHECK(Prefixes(code).find("A") == Prefixes::Kind::always);  // Moses' Czech has none
  }
  CHECK(Prefixes("pl").find("Ł") == Prefixes::Kind::always);
  CHECK(Prefixes("pl").find("mgr") == Prefixes::Kind::always);
  CHECK(Prefixes("nl").find("mevr") == Prefixes::Kind::always);
  CHECK(Prefixes("fi").find("nro") == Prefixes::Kind::before_number);
  CHECK(Prefixes("hu").find("Zs") == Prefixes::Kind::always);
  CHECK(Prefixes("el").find("κλπ") == Prefixes::Kind::always);
  CHECK(Prefixes("lv").find("lpp") == Prefixes::Kind::always);
  CHECK(Prefixes("lt").find("pvz") == Prefixes::Kind::always);
  CHECK(Prefixes("sk").find("napr") == Prefixes::Kind::always);
  CHECK(Prefixes("sl").find("št") == Prefixes::Kind::before_number);
  CHECK(Prefixes("ga").find("lch") == Prefixes::Kind::always);
  CHECK(Prefixes("is").find("Þ") == Prefixes::Kind::always);
  CHECK(Prefixes("ta").find("திரு") == Prefixes::Kind::always);
  CHECK(Prefixes("yue").find("No") == Prefixes::Kind::before_number);
}
