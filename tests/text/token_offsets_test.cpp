#include "heed/text/token_offsets.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "heed/base/utf8.h"
#include "heed/text/steps.h"

using namespace heed;

namespace {

/// Returns, for each token, the part of the raw line that the token comes from; bars separate the parts.
std::string sources(const std::string& raw, const std::string& tokens, bool escaped = false) {
  const TokenOffsets offsets(raw, tokens, escaped);
  std::string out = "|";
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t end = std::min(tokens.find(' ', at), tokens.size());
    const ByteSpan span = offsets.source({at, end});
    out += raw.substr(span.begin, span.end - span.begin) + "|";
    at = end + 1;
  }
  return out;
}

}  // namespace

TEST_CASE("tokens know where they come from") {
  CHECK(sources("Hello, world!", "Hello , world !") == "|Hello|,|world|!|");
  CHECK(sources("  a \t b", "a b") == "|a|b|");
  CHECK(sources("ÉTÉ", "été") == "|ÉTÉ|");
  CHECK(sources("a-b", "a @-@ b") == "|a|-|b|");
  CHECK(sources("it\u2019s \u201Cso\u201D", "it 's \" so \"") == "|it|\u2019s|\u201C|so|\u201D|");
  CHECK(sources("wait\u2026 now", "wait ... now") == "|wait|\u2026|now|");
  CHECK(sources("R&D <b>", "R &amp; D &lt; b &gt;", true) == "|R|&|D|<|b|>|");
  CHECK(sources("R&amp;D", "R & amp ; D") == "|R|&|amp|;|D|");
  CHECK(sources("say &quot;x&quot;", "say \" x \"") == "|say|&quot;|x|&quot;|");
  CHECK(sources("ab\x01"
                "cd",
                "abcd") ==
        "|ab\x01"
        "cd|");
  CHECK(sources("x \xff\xfe y", "x \uFFFD\uFFFD y") == "|x|\xff\xfe|y|");
  CHECK(sources("", "") == "|");
  CHECK(TokenOffsets("ab", "ab X", false).source({3, 4}) == ByteSpan{2, 2});
  CHECK(TokenOffsets("", "X", false).source({0, 1}) == ByteSpan{0, 0});
  CHECK(TokenOffsets("ab", "X ab", false).source({0, 1}) == ByteSpan{0, 0});
}

TEST_CASE("the space between two tokens comes from the bytes between them") {
  const TokenOffsets offsets(" ab \t cd,e  ", "ab cd , e", false);
  CHECK(offsets.source({2, 3}) == ByteSpan{3, 6});
  CHECK(offsets.source({5, 6}) == ByteSpan{8, 8});
  CHECK(offsets.source({7, 8}) == ByteSpan{9, 9});
  CHECK(offsets.source({2, 2}) == ByteSpan{6, 6});
  CHECK(TokenOffsets("  a ", " a ", false).source({0, 1}) == ByteSpan{0, 2});
  CHECK(TokenOffsets("  a ", " a ", false).source({2, 3}) == ByteSpan{3, 4});
  CHECK(TokenOffsets("a-b", "a @-@ b", false).source({1, 2}) == ByteSpan{1, 1});
}

TEST_CASE("white space within a token comes from its place in the line") {
  CHECK(sources("x \u00A0 y", "x \u00A0 y") == "|x|\u00A0|y|");
  CHECK(sources("a\u3000 \u2028b", "a\u3000 \u2028b") == "|a\u3000|\u2028b|");
  CHECK(sources("a\t\t b\t", "a \t \t b \t") == "|a|\t|\t|b|\t|");
  // White space that only separates tokens is part of no token, beside white space that is part of one.
  CHECK(sources("a\tb\u00A0c", "a b\u00A0c") == "|a|b\u00A0c|");
  CHECK(sources("\t\uFB01\t1\u00A0%", "fi 1\u00A0%") == "|\uFB01|1\u00A0%|");
  CHECK(sources("a\u2000b", "a\u2002b") == "|a\u2000b|");
  CHECK(sources("a \u2000 b", "a \u2002 b") == "|a|\u2000|b|");
  CHECK(TokenOffsets("a \u00A0b", "a \u00A0b", false).source({1, 2}) == ByteSpan{1, 2});
}

TEST_CASE("tokens of a tree come from their places in the tree") {
  TextSteps steps;
  const auto parts = [&](const std::string& raw) {
    const std::string tokens = TextPipeline(steps).tokenize(replace_invalid_utf8(raw));
    const TokenOffsets offsets(raw, tokens, steps.escape, places_in_tree(steps, raw));
    std::string out;
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      const std::size_t end = std::min(tokens.find(' ', at), tokens.size());
      const ByteSpan span = offsets.source({at, end});
      out += std::to_string(span.begin) + ":" + raw.substr(span.begin, span.end - span.begin) + " ";
      at = end;
    }
    return out;
  };
  steps.mode = TokenMode::leaves;
  // Each label could be taken for a word here.
  const std::string tree = "(S (NP (NN S) (NP NN)) (VP (NN NP) (S \xFFS)))";
  CHECK(parts(tree) == "11:S 18:NN 31:NP 38:\xFFS ");
  steps.lowercase = steps.escape = true;
  CHECK(parts("(S (NN [a) (X R&D))") == "7:[a 14:R&D ");
  steps.normalize = NormalForm::nfkc;
  CHECK(parts("\uFF08NN \uFF21)") == "6:\uFF21 ");
  CHECK(parts("(S (NN \uFF21) (X x))") == "7:\uFF21 15:x ");
  steps = {};
  steps.mode = TokenMode::trees;
  CHECK(parts(tree) == "0:(S 3:(NP 8:NN 15:NP 21:) 23:(VP 28:NN 36:S 41:) 42:) ");
  CHECK(places_in_tree(steps, "no tree").empty());
  CHECK(places_in_tree({}, tree).empty());
}

TEST_CASE("tokens of the Moses rules come from what they look like") {
  TextSteps steps;
  const std::string raw = "Mr. Smith's \"test\" costs 5,300.50 EUR (approx.) at http://x.org/a?b=c.";
  const std::string tokens = TextPipeline(steps).tokenize(raw);
  const TokenOffsets offsets(raw, tokens, false);
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t end = std::min(tokens.find(' ', at), tokens.size());
    const ByteSpan span = offsets.source({at, end});
    CHECK(raw.substr(span.begin, span.end - span.begin) == tokens.substr(at, end - at));
    at = end + 1;
  }
}

TEST_CASE("long lines that differ everywhere take time in proportion to their length") {
  const std::string raw(400000, 'a'), tokens(400000, 'b');
  const TokenOffsets all(raw, tokens, false);
  CHECK(all.source({0, tokens.size()}) == ByteSpan{0, raw.size()});
  std::string mixed, spaced;
  for (int i = 0; i < 60000; ++i) mixed += "ab.", spaced += i % 3 == 0 ? "ab . " : "aB! ";
  const TokenOffsets there(mixed, spaced, false);
  const ByteSpan last = there.source({spaced.size() - 4, spaced.size() - 1});
  CHECK(last.end == mixed.size());
}
