#include "heed/text/moses/nonbreaking_prefixes.h"

#include <doctest/doctest.h>

#include <string>

using namespace heed;

TEST_CASE("abbreviations keep their full stop always, before a number, or not at all") {
  const NonbreakingPrefixes english("en");
  CHECK(english.find("Mr") == NonbreakingPrefixes::Kind::always);
  CHECK(english.find("No") == NonbreakingPrefixes::Kind::before_number);
  CHECK(english.find("mr") == NonbreakingPrefixes::Kind::none);
  CHECK(english.find("") == NonbreakingPrefixes::Kind::none);
  CHECK(english.find("No#") == NonbreakingPrefixes::Kind::none);
}

TEST_CASE("each language has its own, and one without a list the English ones") {
  CHECK(NonbreakingPrefixes("de").find("bzw") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("de").find("No") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("fr").find("chap") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("fr").find("a") == NonbreakingPrefixes::Kind::none);
  CHECK(NonbreakingPrefixes("pt").find("Art") == NonbreakingPrefixes::Kind::before_number);
  CHECK(has_nonbreaking_prefixes("cs"));
  CHECK_FALSE(has_nonbreaking_prefixes("xx"));
  CHECK(NonbreakingPrefixes("xx").find("Mr") == NonbreakingPrefixes::Kind::always);
}

TEST_CASE("every language of Moses has a list, with initials of its alphabet and abbreviations of its own") {
  for (const char* code : {"en", "de", "fr", "cs", "es", "it", "pt", "nl", "pl", "ro", "ru", "sv",  "fi",
                           "hu", "el", "lv", "lt", "sk", "sl", "ga", "is", "ca", "ta", "zh", "yue", "tdt"}) {
    CAPTURE(code);
    CHECK(has_nonbreaking_prefixes(code));
    if (std::string(code) != "cs")
      // Moses' Czech list has no initials.
      CHECK(NonbreakingPrefixes(code).find("A") == NonbreakingPrefixes::Kind::always);
  }
  CHECK(NonbreakingPrefixes("pl").find("Ł") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("pl").find("mgr") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("nl").find("mevr") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("fi").find("nro") == NonbreakingPrefixes::Kind::before_number);
  CHECK(NonbreakingPrefixes("hu").find("Zs") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("el").find("κλπ") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("lv").find("lpp") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("lt").find("pvz") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("sk").find("napr") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("sl").find("št") == NonbreakingPrefixes::Kind::before_number);
  CHECK(NonbreakingPrefixes("ga").find("lch") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("is").find("Þ") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("ta").find("திரு") == NonbreakingPrefixes::Kind::always);
  CHECK(NonbreakingPrefixes("yue").find("No") == NonbreakingPrefixes::Kind::before_number);
}
