#include "heed/data/parallel_text.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "scratch_folder.h"

using namespace heed;

namespace {

std::vector<TextPair> all(PairReader reader) {
  std::vector<TextPair> pairs;
  for (TextPair pair; reader.next(pair);) pairs.push_back(pair);
  return pairs;
}

}  // namespace

TEST_CASE("pairs come from two files, with CRLF and without a last line end") {
  const ScratchFolder folder;
  const auto pairs = all(PairReader(folder.file("a", "go .\r\n\ni lost .\n"), folder.file("b", "va !\nx\nj'ai perdu ."),
                                    InvalidUtf8::replace));
  REQUIRE(pairs.size() == 3);
  CHECK(pairs[0].source == "go .");
  CHECK(pairs[1].source.empty());
  CHECK(pairs[2].target == "j'ai perdu .");
}

TEST_CASE("unequal files are an error with both counts, whichever is longer") {
  const ScratchFolder folder;
  const std::string three = folder.file("three", "1\n2\n3\n"), one = folder.file("one", "1\n");
  const std::string rule = " (line i of one has to be the translation of line i of the other)";
  CHECK_THROWS_WITH_AS(all(PairReader(three, one, InvalidUtf8::replace)),
                       (one + ": has 1 line, but " + three + " has 3 lines" + rule).c_str(), Error);
  CHECK_THROWS_WITH_AS(all(PairReader(one, three, InvalidUtf8::replace)),
                       (one + ": has 1 line, but " + three + " has 3 lines" + rule).c_str(), Error);
}

TEST_CASE("pairs come from a TSV on a stream; other numbers of columns are errors with their place") {
  std::istringstream good("go .\tva !\n\tx\n");
  const auto pairs = all(PairReader("-", good, InvalidUtf8::replace));
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].source == "go .");
  CHECK(pairs[0].target == "va !");
  CHECK(pairs[1].source.empty());

  std::istringstream none("a\tb\nno tab\n");
  CHECK_THROWS_WITH_AS(all(PairReader("-", none, InvalidUtf8::replace)),
                       "standard input:2: no TAB in this line (a line is: source TAB target)", Error);
  std::istringstream many("a\tb\tc\n");
  CHECK_THROWS_WITH_AS(all(PairReader("-", many, InvalidUtf8::replace)),
                       "standard input:1:4: more than two columns (a line is: source TAB target; cut -f1,2 picks two)",
                       Error);
}

TEST_CASE("pairs come from trees, of which blank lines have none") {
  std::istringstream trees("(S (NN dog))\n\n \t\n(S (NN cat)\n");
  PairReader reader = PairReader::of_trees("-", trees, InvalidUtf8::replace);
  TextPair pair;
  REQUIRE(reader.next(pair));
  CHECK(pair.source == "dog");
  CHECK(pair.target == "(S (NN dog))");
  for (int line = 2; line <= 3; ++line) {
    REQUIRE(reader.next(pair));
    CHECK(pair.source.empty());
    CHECK(reader.line_number() == line);
  }
  CHECK_THROWS_WITH_AS(reader.next(pair), "standard input:4:1: this bracket is never closed", Error);
}

TEST_CASE("invalid UTF-8 is counted over both sides, or refused with its place") {
  const ScratchFolder folder;
  const std::string good = folder.file("good", "a\nb\n"), bad = folder.file("bad", "a\nx\xff\n");
  PairReader reader(good, bad, InvalidUtf8::replace);
  for (TextPair pair; reader.next(pair);) {
  }
  CHECK(reader.invalid_lines() == 1);
  CHECK(reader.first_invalid_line() == 2);
  CHECK_THROWS_WITH_AS(
      all(PairReader(good, bad, InvalidUtf8::fail)),
      (bad + ":2:2: invalid UTF-8 (convert the file with iconv, or allow it with --on-invalid-utf8 replace)").c_str(),
      Error);
}
