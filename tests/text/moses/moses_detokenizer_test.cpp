#include "heed/text/moses/moses_detokenizer.h"

#include <doctest/doctest.h>

using namespace heed;

namespace {

std::string detokenized_in(const std::string& language, std::string_view tokens, bool uppercase = false) {
  return MosesDetokenizer(language).detokenize(tokens, uppercase);
}

}  // namespace

TEST_CASE("punctuation goes to its word") {
  CHECK(detokenized_in("en", "Hello , world ! ( yes ) 5 % of $ 3 .") == "Hello, world! (yes) 5% of $3.");
  CHECK(detokenized_in("en", "a @-@ b") == "a-b");
  CHECK(detokenized_in("en", "a  (  b") == "a ( b");
}

TEST_CASE("lines of white space and tags come out as they are") {
  CHECK(detokenized_in("en", " \t") == " \t");
  CHECK(detokenized_in("en", "<a  b>") == "<a  b>");
  CHECK(detokenized_in("en", "<>") == "<>");
}

TEST_CASE("English contractions and possessives") {
  CHECK(detokenized_in("en", "I 'm at the Jones ' house , he 's not") == "I'm at the Jones' house, he's not");
  CHECK(detokenized_in("de", "I 'm") == "I 'm");
}

TEST_CASE("quotation marks open and close in turn") {
  CHECK(detokenized_in("en", "\" a \" b \" c \"") == "\"a\" b \"c\"");
  CHECK(detokenized_in("en", "' a ' `` b") == "'a' ``b");
  CHECK(detokenized_in("cs", "\u201E a \u201C b") == "\u201Ea\u201C b");
}

TEST_CASE("French elisions, and a space before double punctuation") {
  CHECK(detokenized_in("fr", "l' ami d' or ! Oui ?") == "l'ami d'or ! Oui ?");
  CHECK(detokenized_in("fr", "Oui ?! Non , 5 %") == "Oui?! Non, 5 %");
  CHECK(detokenized_in("it", "l' uomo !") == "l'uomo!");
}

TEST_CASE("Czech decimals and hyphens, Finnish endings, no spaces in Chinese") {
  CHECK(detokenized_in("cs", "3 , 5 a") == "3,5 a");
  CHECK(detokenized_in("cs", "je - li to") == "je-li to");
  CHECK(detokenized_in("fi", "EU: SSA x EU: Ssako y") == "EU: SSA x EU:ssako y");
  CHECK(detokenized_in("en", "\u4E2D \u6587 a") == "\u4E2D\u6587 a");
  CHECK(detokenized_in("ko", "\uD55C \uAD6D") == "\uD55C \uAD6D");
}

TEST_CASE("entities are read once") {
  CHECK(detokenized_in("en", "&amp;lt; &apos;s &#124; &bar; &#91;x&#93; &nbsp;") == "&lt; 's | | [x] &nbsp;");
  CHECK(MosesDetokenizer("en", false).detokenize("&lt; a") == "&lt; a");
}

TEST_CASE("the first letter upper-case on demand") {
  CHECK(detokenized_in("en", "\" \u00E9t\u00E9 \"", true) == "\"\u00C9t\u00E9\"");
  CHECK(detokenized_in("en", "( \u00DFa )", true) == "(SSa)");
  CHECK(detokenized_in("en", "5 a", true) == "5 a");
}
