#include "heed/text/lexicon/shortlist.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "heed/base/error.h"
#include "heed/text/lexicon/lexical_table.h"

using namespace heed;
using nlohmann::json;

namespace {

using Ids = std::vector<std::int32_t>;

/// Returns the expected lexicon, which scripts/reference/make_lexicon_reference.py has computed.
const json& shortlist_reference() {
  static const json answers = json::parse(std::ifstream(HEED_TEST_DATA "/text/reference/lexicon.json"));
  return answers;
}

PieceText text_of(const json& lines) {
  PieceText text;
  for (const std::string line : lines) text.add(line);
  return text;
}

/// A temporary file, which the destructor removes.
struct File {
  std::string path = std::filesystem::temp_directory_path() / ("heed_shortlist_" + std::to_string(::getpid()));
  explicit File(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  ~File() { std::filesystem::remove(path); }
};

Vocabulary vocabulary(std::vector<std::string> pieces) {
  pieces.insert(pieces.begin(), {"<pad>", "<unk>", "<s>", "</s>"});
  return Vocabulary(pieces);
}

std::string message_of(const std::string& text, const Vocabulary& source, const Vocabulary& target) {
  const File file(text);
  try {
    Shortlist::read(file.path, source, target);
  } catch (const Error& error) {
    const std::string what = error.what();
    REQUIRE(what.starts_with(file.path));
    return what.substr(file.path.size());
  }
  return "";
}

}  // namespace

TEST_CASE("Model 1 gives the textbook's probabilities") {
  const PieceText source = text_of(shortlist_reference()["source"]), target = text_of(shortlist_reference()["target"]);
  for (const int iterations : {1, 2, 5}) {
    const LexicalTable table = learn_model1(source, target, iterations, 1);
    const json& expected = shortlist_reference()["tables"][std::to_string(iterations)];
    std::size_t rows = 0;
    for (std::int32_t s = 0; s < source.pieces().size(); ++s) {
      const LexicalTable::Row row = table.row(s);
      if (row.targets.empty()) continue;
      ++rows;
      const json& wanted = expected.at(std::string(source.pieces()[s]));
      REQUIRE(row.targets.size() == wanted.size());
      for (std::size_t i = 0; i < row.targets.size(); ++i)
        CHECK(static_cast<double>(row.probabilities[i]) ==
              doctest::Approx(wanted.at(std::string(target.pieces()[row.targets[i]])).get<double>()).epsilon(2e-6));
    }
    CHECK(rows == expected.size());
  }
}

TEST_CASE("the table is the same, bit for bit, for any number of threads") {
  const PieceText source = text_of(shortlist_reference()["source"]), target = text_of(shortlist_reference()["target"]);
  const LexicalTable one = learn_model1(source, target, 5, 1);
  for (const int threads : {2, 3, 9}) {
    int reported = 0;
    const LexicalTable other = learn_model1(source, target, 5, threads, [&](int done) { CHECK(done == ++reported); });
    CHECK(reported == 5);
    CHECK(other.begins == one.begins);
    CHECK(other.targets == one.targets);
    CHECK(other.probabilities == one.probabilities);
  }
}

TEST_CASE("links are counted") {
  const PieceText source = text_of(json{"a b a", "b", "c"}), target = text_of(json{"x y", "x", ""});
  const std::vector<AlignmentLink> links = {{0, 0}, {2, 1}, {1, 1}, {3, 2}, {0, 0}};
  const LexicalTable table = count_links(source, target, links);
  CHECK(table.begins == std::vector<std::int64_t>{0, 2, 4, 4});
  CHECK(table.targets == Ids{0, 1, 0, 1});
  CHECK(table.probabilities == std::vector<float>{2 / 3.0F, 1 / 3.0F, 0.5F, 0.5F});
}

TEST_CASE("a shortlist is written in a fixed order, cut to what is asked for") {
  const PieceText source = text_of(json{"b a a", "a", "c"}), target = text_of(json{"x y y", "z", "w"});
  const std::vector<AlignmentLink> links = {{0, 0}, {1, 2}, {2, 1}, {3, 3}, {1, 0}, {4, 4}};
  std::ostringstream out;
  write_shortlist(out, source, target, count_links(source, target, links), {.frequent = 2, .best = 2});
  CHECK(out.str() ==
        "heed-shortlist 1\n y 2\n w 1\n"
        "a y 0.5\na x 0.25\nb x 1\nc w 1\n");
  std::ostringstream none;
  write_shortlist(none, source, target, count_links(source, target, links), {.frequent = 0, .best = 0});
  CHECK(none.str() == "heed-shortlist 1\n");
}

TEST_CASE("a source may become what is reserved, frequent, listed for its pieces, and these pieces themselves") {
  const Vocabulary source = vocabulary({"a", "b", "1984", "\t"}),
                   target = vocabulary({"x", "y", "z", "\t", "1984", "w"});
  const File file("heed-shortlist 1\n y 20\nb x 0.5\na z 1e-7\r\nb z 0.25\n\t w 1\nelse z 1\na else 1\n else 3\n");
  const Shortlist list = Shortlist::read(file.path, source, target);
  CHECK(list.lines() == 8);
  CHECK(list.foreign_lines() == 3);
  CHECK(list.first_foreign().line == 7);
  Ids ids;
  list.targets_of(Ids{kEndId}, ids);
  CHECK(ids == Ids{0, 1, 2, 3, 5});
  list.targets_of(Ids{4, 4, kUnknownId, kEndId}, ids);
  CHECK(ids == Ids{0, 1, 2, 3, 5, 6});
  list.targets_of(Ids{5, kEndId}, ids);
  CHECK(ids == Ids{0, 1, 2, 3, 4, 5, 6});
  list.targets_of(Ids{6, 7, kEndId}, ids);  // 6 is the id of a number, 7 the id of a piece that is a TAB
  CHECK(ids == Ids{0, 1, 2, 3, 5, 7, 8, 9});
}

TEST_CASE("what is no shortlist is refused, with the line") {
  const Vocabulary source = vocabulary({"a", "b"}), target = vocabulary({"x", "y"});
  const auto refuses = [&](const std::string& text, const std::string& what) {
    INFO(text);
    CHECK(message_of(text, source, target).starts_with(what));
  };
  const std::string first = "heed-shortlist 1\n";
  refuses("", ": is empty (build-vocab --shortlist makes one)");
  refuses("a x 0.5\n", ":1: is no shortlist: it does not start with 'heed-shortlist 1'");
  refuses("heed-shortlist 2\n", ":1: is a shortlist of version '2'; this heed reads 1");
  refuses(first + "a x 1\n\n", ":3: is not 'source target probability' nor ' target count'");
  refuses(first + "a x\n", ":2: is not 'source target");
  refuses(first + "a x 1 1\n", ":2: is not 'source target");
  refuses(first + "a\tx\t1\n", ":2: is not 'source target");
  refuses(first + "a  1\n", ":2: is not 'source target");
  for (const std::string number : {"", "-0.5", "1.5", "nan", "inf", "0.5x", "x"})
    refuses(first + "a x " + number + "\n", ":2: '" + number + "' is no probability");
  refuses(first + " x -1\n", ":2: '-1' is no count");
  refuses(first, ": holds no pair of pieces that the model knows");
  refuses(first + " x 3\nx a 0.5\n", ": holds no pair of pieces that the model knows");
  refuses(first + "<s> </s> 0.5\n", ": holds no pair of pieces that the model knows");
}
