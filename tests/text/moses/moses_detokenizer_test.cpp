#include "heed/text/moses/moses_detokenizer.h"

#include <doctest/doctest.h>

using namespace heed;

namespace {

std::string in(const std::string& language, std::string_view tokens, bool uppercase = false) {
  return MosesDetokenizer(language).detokenize(tokens, uppercase);
}

}  // namespace

TEST_CASE("punctuation goes to its word") {
  CHECK(in("en", "Hello , world ! ( yes ) 5 % of $ 3 .") == "Hello, world! (yes) 5% of $3.");
  CHECK(in("en", "a @-@ b") == "a-b");
  CHECK(in("en", "a  (  b") == "a ( b");
}

TEST_CASE("lines of white space and tags come out as they are") {
  CHECK(in("en", " \t") == " \t");
  CHECK(in("en", "<a  b>") == "<a  b>");
  CHECK(in("en", "<>") == "<>");
}

TEST_CASE("English contractions and possessives") {
  CHECK(in("en", "I 'm at the Jones ' house , he 's not") == "I'm at the Jones' house, he's not");
  CHECK(in("de", "I 'm") == "I 'm");
}

TEST_CASE("quotation marks open and close in turn") {
  CHECK(in("en", "\" a \" b \" c \"") == "\"a\" b \"c\"");
  CHECK(in("en", "' a ' `` b") == "'a' ``b");
  CHECK(in("cs", "\u201E a \u201C b") == "\u201Ea\u201C b");
}

TEST_CASE("French elisions, and a space before double punctuation") {
  CHECK(in("fr", "l' ami d' or ! Oui ?") == "l'ami d'or ! Oui ?");
  CHECK(in("fr", "Oui ?! Non , 5 %") == "Oui?! Non, 5 %");
  CHECK(in("it", "l' uomo !") == "l'uomo!");
}

TEST_CASE("Czech decimals and hyphens, Finnish endings, no spaces in Chinese") {
  CHECK(in("cs", "3 , 5 a") == "3,5 a");
  CHECK(in("cs", "je - li to") == "je-li to");
  CHECK(in("fi", "EU: SSA x EU: Ssako y") == "EU: SSA x EU:ssako y");
  CHECK(in("en", "\u4E2D \u6587 a") == "\u4E2D\u6587 a");
  CHECK(in("ko", "\uD55C \uAD6D") == "\uD55C \uAD6D");
}

TEST_CASE("entities are read once") {
  CHECK(in("en", "&amp;lt; &apos;s &#124; &bar; &#91;x&#93; &nbsp;") == "&lt; 's | | [x] &nbsp;");
  CHECK(MosesDetokenizer("en", false).detokenize("&lt; a") == "&lt; a");
}

TEST_CASE("the first letter upper-case on demand") {
  CHECK(in("en", "\" \u00E9t\u00E9 \"", true) == "\"\u00C9t\u00E9\"");
  CHECK(in("en", "( \u00DFa )", true) == "(SSa)");
  CHECK(in("en", "5 a", true) == "5 a");
}
