#include "heed/text/bpe/bpe.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "heed/base/error.h"
#include "heed/base/utf8.h"
#include "heed/text/bpe/bpe_learner.h"
#include "heed/text/bpe/bpe_pairs.h"
#include "heed/text/strings/string_ids.h"
#include "heed/text/subwords.h"
#include "text/listed.h"

using namespace heed;
using nlohmann::json;

namespace {

/// Returns the answers of subword-nmt, which scripts/reference/make_bpe_reference.py has written.
const json& bpe_reference() {
  static const json answers = json::parse(std::ifstream(HEED_TEST_DATA "/text/reference/bpe.json"));
  return answers;
}

std::vector<std::string> words_of_line(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, ' ');)
    if (!word.empty()) words.push_back(word);
  return words;
}

WordCounts count_words(const json& lines) {
  WordCounts words;
  for (const std::string line : lines)
    for (const std::string& word : words_of_line(line)) words.add(word);
  return words;
}

/// Checks BpeLearnt::pieces: the learner must count the same pieces as a BpeEncoder that cuts the words with the learnt
/// merges, and then list the other single characters with count 0.
void check_pieces(const WordCounts& words, const BpeLearnt& learnt) {
  WordCounts pieces;
  for (const auto& merges : {learnt.merges, BpeMerges()}) {
    const Subwords subwords(std::make_shared<const BpeEncoder>(merges));
    for (std::size_t i = 0; i < words.size(); ++i)
      subwords.split(words.word(i), [&](std::string_view piece, int) {
        pieces.add(piece, merges.pairs.empty() ? 0 : words.count(i));
      });
  }
  CHECK(listed(learnt.pieces) == listed(pieces));
}

/// Returns the pieces of a line, joined by single spaces.
std::string applied(const Subwords& subwords, const std::string& line) {
  std::string out;
  subwords.split(line, [&](std::string_view piece, int) { out.append(out.empty() ? "" : " ").append(piece); });
  return out;
}

std::string trimmed(const std::string& line) {
  std::string out;
  for (const std::string& word : words_of_line(line)) out.append(out.empty() ? "" : " ").append(word);
  return out;
}

Subwords encoder(const std::string& codes, std::int64_t limit = -1, std::string separator = "@@",
                 BpeOptions::Allowed allowed = nullptr) {
  return Subwords(
      std::make_shared<const BpeEncoder>(BpeMerges::parse(codes, "codes", limit),
                                         BpeOptions{.separator = std::move(separator), .allowed = std::move(allowed)}));
}

void check_applied(const Subwords& subwords, const json& lines, const json& expected, std::size_t first = 0) {
  for (std::size_t i = 0; i < lines.size(); ++i)
    CHECK(applied(subwords, lines[i]) == trimmed(expected[first + i].get<std::string>()));
}

std::string parse_error(const std::string& codes) {
  try {
    BpeMerges::parse(codes, "codes");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("learnt merges are those of learn-bpe") {
  for (const json& test : bpe_reference()["learnt"]) {
    CAPTURE(test["name"].get<std::string>());
    const WordCounts words = count_words(test["lines"]);
    const std::int64_t merges = test["merges"];
    CHECK(learn_bpe(words, {.merges = merges}).merges.text() == test["codes"].get<std::string>());
    const BpeLearnt frequent = learn_bpe(words, {.merges = merges, .min_frequency = 5});
    CHECK(frequent.merges.text() == test["codes_min_frequency_5"].get<std::string>());
    CHECK(frequent.exhausted == (frequent.merges.pairs.size() < static_cast<std::size_t>(merges)));
  }
}

TEST_CASE("learnt merges and pieces where symbols are made again, and where words occur 0 times") {
  for (const json& test : bpe_reference()["counted"]) {
    CAPTURE(test["name"].get<std::string>());
    WordCounts words;
    for (const auto& [word, count] : test["words"].items()) words.add(word, count);
    const BpeLearnt learnt = learn_bpe(words, {.merges = test["merges"], .min_frequency = 1});
    CHECK(learnt.merges.text() == test["codes"].get<std::string>());
    check_pieces(words, learnt);
    CHECK(learn_bpe(std::move(words), {.merges = test["merges"], .min_frequency = 1}).merges.pairs ==
          learnt.merges.pairs);
    CHECK(words.size() == 0);
  }
}

TEST_CASE("more symbols, or more large counts, than 16 bits can tell apart, and counts beyond 32 bits") {
  WordCounts characters;
  for (char32_t c = 0x10000; c < 0x20000 + 5000; ++c) characters.add(to_utf8(std::u32string{c, 'a', 'b', c}), c % 7);
  const BpeLearnt learnt = learn_bpe(characters, {.merges = 50});
  CHECK(learnt.merges.pairs.front() == std::pair<std::string, std::string>("a", "b"));
  check_pieces(characters, learnt);

  WordCounts small;
  for (std::int64_t i = 0; i < 20000; ++i) small.add(std::to_string(i * 7919), 1 + i % 5);
  const auto expected = learn_bpe(small, {.merges = 500}).merges.pairs;
  for (const std::int64_t scale : {std::int64_t{50000}, std::int64_t{1} << 33}) {
    WordCounts large;
    for (std::size_t i = 0; i < small.size(); ++i) large.add(small.word(i), small.count(i) * scale);
    const BpeLearnt of_large = learn_bpe(large, {.merges = 500, .min_frequency = 2 * scale});
    CHECK(of_large.merges.pairs == expected);
    check_pieces(large, of_large);
  }

  const StringIds texts;
  BpePairs pairs(texts);
  pairs.prune(1);
  CHECK(pairs.threshold_after(1'000'000'000'000'000, 990'000) == 990'000'000'000'000.0);
}

TEST_CASE("words are cut as apply-bpe cuts them: seen ones, unseen ones, fewer merges, a restricted vocabulary") {
  for (const json& test : bpe_reference()["learnt"]) {
    CAPTURE(test["name"].get<std::string>());
    const std::string codes = test["codes"];
    check_applied(encoder(codes), test["lines"], test["applied"]);
    check_applied(encoder(codes), test["unseen"], test["unseen_applied"]);
    const json first(
        test["lines"].begin(),
        test["lines"].begin() + std::min<std::ptrdiff_t>(20, static_cast<std::ptrdiff_t>(test["lines"].size())));
    check_applied(encoder(codes, test["half"]), first, test["half_applied"]);
    if (test["restricted"].is_null()) continue;
    const auto path = std::filesystem::temp_directory_path() / ("heed_bpe_counts_" + std::to_string(::getpid()));
    std::ofstream(path) << test["counts"].get<std::string>();
    const Subwords restricted = encoder(codes, -1, "@@", read_counted_vocabulary(path, test["threshold"]));
    std::filesystem::remove(path);
    check_applied(restricted, first, test["restricted"]);
    check_applied(restricted, test["unseen"], test["restricted"], first.size());
  }
}

TEST_CASE("text that reads like the end-of-word mark cannot break the splitting of unknown pieces") {
  const Subwords subwords = encoder("#version: 0.2\n< /\n</ w\nx </w\nx</w >\n< /w>\n</w ></w>\n", -1, "@@",
                                    [](std::string_view piece) { return piece == "x"; });
  for (const std::string word : {"x</w>", "xx", "</w>x", "x</w></w>", "</w>"}) {
    std::string joined;
    for (std::string piece : subwords.split(word)) {
      CHECK(piece != "@@");
      joined += piece.ends_with("@@") ? piece.substr(0, piece.size() - 2) : piece;
    }
    CHECK(joined == word);
  }
}

TEST_CASE("codes of version 0.1, merges listed twice, symbols made by two merges, another separator") {
  for (const json& test : bpe_reference()["given"]) {
    CAPTURE(test["name"].get<std::string>());
    check_applied(encoder(test["codes"]), test["lines"], test["applied"]);
    check_applied(encoder(test["codes"], -1, test["separator"]), test["lines"], test["separated"]);
  }
}

TEST_CASE("groups in glossaries: no text of a group is repeated, and \\1 is the first group of its expression") {
  const auto cut = [](const std::vector<std::string>& glossaries, const std::string& word) {
    BpeOptions options;
    options.glossaries = Glossaries(glossaries);
    const Subwords subwords(
        std::make_shared<const BpeEncoder>(BpeMerges::parse("#version: 0.2\n", "codes"), std::move(options)));
    std::string out;
    subwords.split(word, [&](std::string_view piece, int) { out.append(out.empty() ? "" : " ").append(piece); });
    return out;
  };
  CHECK(cut({"[0-9]+(\\.[0-9]+)?"}, "x12.34y") == "x@@ 12.34@@ y");
  CHECK(cut({"(USA|UK)"}, "xUSAUKy") == "x@@ USA@@ UK@@ y");
  CHECK(cut({"(X)(Y)", "([0-9])\\1"}, "a22b") == "a@@ 22@@ b");
  CHECK(cut({"(?<sign>[+-])1", "(?<sign>[+-])2"}, "a+1b-2") == "a@@ +1@@ b@@ -2");
}

TEST_CASE("glossaries keep parts of words whole as apply-bpe's do") {
  for (const json& test : bpe_reference()["glossaries"]) {
    CAPTURE(test["glossaries"].dump());
    const auto with = [&](BpeOptions::Allowed allowed) {
      BpeOptions options{.allowed = std::move(allowed)};
      options.glossaries = Glossaries(test["glossaries"].get<std::vector<std::string>>());
      return Subwords(std::make_shared<const BpeEncoder>(BpeMerges::parse(std::string(test["codes"]), "codes"),
                                                         std::move(options)));
    };
    check_applied(with(nullptr), test["lines"], test["applied"]);
    const auto known = [](std::string_view piece) { return piece == "low" || piece == "USA" || piece == "lo@@"; };
    check_applied(with(known), test["lines"], test["restricted"]);
  }
  CHECK_THROWS_WITH_AS(Glossaries({"fine", "("}), doctest::Contains("the glossary '(' is no regular expression"),
                       UsageError);
}

/// Returns bytes from the way in which the reference file writes them: one character for each byte, whose code point is
/// the byte's value.
std::string bytes_of(const std::string& text) {
  std::string bytes;
  for (const char32_t c : to_utf32(text)) bytes += static_cast<char>(c);
  return bytes;
}

TEST_CASE("merges of bytes cut within characters") {
  const json& test = bpe_reference()["bytes"];
  std::string codes = bytes_of(test["codes"]);
  codes.insert(codes.find('\n'), " byte");
  for (const auto& [limit, expected] : {std::pair{-1, "applied"}, {60, "half_applied"}}) {
    const BpeMerges merges = BpeMerges::parse(codes, "codes", limit);
    CHECK(merges.text().starts_with("#version: 0.2 byte\n"));
    const Subwords subwords(std::make_shared<const BpeEncoder>(merges));
    for (std::size_t i = 0; i < test["lines"].size(); ++i)
      CHECK(applied(subwords, bytes_of(test["lines"][i])) == trimmed(bytes_of(test[expected][i])));
  }
  CHECK(parse_error("#version: 0.2\n\xff a\n").starts_with("codes:2: invalid UTF-8"));
  CHECK_THROWS_WITH_AS(BpeMerges::parse("a b\n", "codes", -1, true), doctest::Contains("codes of version 0.1"), Error);
}

TEST_CASE("dropout leaves out merges at the rate asked for, by seed and line alone") {
  const Subwords subwords = encoder("#version: 0.2\na b</w>\n");
  const auto whole = [&](double dropout, std::uint64_t line, int words) {
    SubwordSampler sampler{.dropout = dropout, .stream = RandomStream(7, RandomUse::subwords, line)};
    int kept = 0;
    for (int i = 0; i < words; ++i)
      subwords.split(
          "ab", [&](std::string_view piece, int) { kept += piece == "ab"; }, &sampler);
    return kept;
  };
  CHECK(whole(0, 1, 100) == 100);
  CHECK(whole(1, 1, 100) == 0);
  CHECK(whole(0.3, 1, 10000) == doctest::Approx(7000).epsilon(0.02));
  CHECK(whole(0.3, 1, 10000) == whole(0.3, 1, 10000));
  CHECK(whole(0.3, 1, 10000) != whole(0.3, 2, 10000));
}

TEST_CASE("dropout: two merges in a row, and the merges that are left come in their order") {
  // Each merge is kept with the probability 0.5. For the piece abc two merges must be kept: a b c -> ab c -> abc.
  const Subwords subwords = encoder("#version: 0.2\na b\nab c</w>\nb c</w>\n");
  SubwordSampler sampler{.dropout = 0.5, .stream = RandomStream(1, RandomUse::subwords)};
  std::map<std::string, int> seen;
  for (int i = 0; i < 20000; ++i) {
    std::string pieces;
    subwords.split(
        "abc", [&](std::string_view piece, int) { pieces.append(piece).append(" "); }, &sampler);
    ++seen[pieces];
  }
  CHECK(seen["abc "] == doctest::Approx(20000 * 0.25).epsilon(0.05));     // merges a b and ab c kept
  CHECK(seen["ab@@ c "] == doctest::Approx(20000 * 0.25).epsilon(0.05));  // a b kept, ab c left out
  CHECK(seen["a@@ bc "] == doctest::Approx(20000 * 0.25).epsilon(0.05));  // a b left out, b c kept
  CHECK(seen["a@@ b@@ c "] == doctest::Approx(20000 * 0.25).epsilon(0.05));
  std::string all;
  subwords.split(
      std::string(5000, 'a'), [&](std::string_view piece, int) { all += piece.front(); }, &sampler);
  CHECK(all.size() == 5000);
}

TEST_CASE("the pieces that occur are get-vocab's, in its order") {
  for (const json& test : bpe_reference()["learnt"]) {
    const Subwords subwords = encoder(test["codes"]);
    WordCounts pieces;
    for (const std::string line : test["lines"])
      subwords.split(line, [&](std::string_view piece, int) { pieces.add(piece); });
    std::string out;
    for (const std::size_t i : pieces.by_count())
      out.append(pieces.word(i)).append(" ").append(std::to_string(pieces.count(i))).append("\n");
    CHECK(out == test["counts"].get<std::string>());
  }
}

TEST_CASE("learning stops at a number of symbols, characters included") {
  const WordCounts words = count_words(bpe_reference()["learnt"][0]["lines"]);
  for (const std::int64_t symbols : {100, 150, 200}) {
    const BpeLearnt learnt = learn_bpe(words, {.symbols = symbols});
    CHECK(learnt.pieces.size() == static_cast<std::size_t>(symbols));
    check_pieces(words, learnt);
  }
}

TEST_CASE("a word of a megabyte is cut in good time, and as short words are") {
  std::string word;
  for (int i = 0; i < 400000; ++i) word += i % 7 < 3 ? "ab" : "abc";
  const BpeEncoder encoder(BpeMerges::parse("#version: 0.2\na b\nab c\nabc abc\nab ab\n", "codes"));
  std::vector<std::size_t> ends;
  encoder.segment(word, ends);
  CHECK(ends.back() == word.size());
  // The word repeats a period of seven parts. Far from the word's ends every period must be cut in the same way.
  const std::size_t period = 3 * 2 + 4 * 3;
  const auto at = std::find(ends.begin(), ends.end(), 1000 * period) - ends.begin();
  std::vector<std::size_t> shorter;
  encoder.segment(word.substr(0, 2 * period), shorter);
  for (std::size_t i = 0; shorter[i] <= period; ++i)
    CHECK(ends[static_cast<std::size_t>(at) + 1 + i] == 1000 * period + shorter[i]);
}

TEST_CASE("merges of a word of a megabyte are learnt in time in proportion to its length") {
  for (const int period : {1, 2, 26}) {
    CAPTURE(period);
    std::string word;
    for (int i = 0; i < 1000000; ++i) word += static_cast<char>('a' + i % period);
    WordCounts words;
    words.add(word, 2);
    words.add("ab");
    const BpeLearnt learnt = learn_bpe(words, {.merges = 12});
    CHECK(learnt.merges.pairs.size() == 12);
    check_pieces(words, learnt);
  }
}

TEST_CASE("one encoder serves several threads") {
  const json test = bpe_reference()["learnt"][1];
  const Subwords subwords = encoder(test["codes"]);
  std::vector<std::string> got(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < got.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round)
        for (const std::string line : test["lines"]) got[t] += applied(subwords, line) + "\n";
    });
  for (auto& thread : threads) thread.join();
  for (const std::string& each : got) CHECK(each == got[0]);
}

TEST_CASE("codes files are read with line numbers in their errors") {
  CHECK(BpeMerges::parse("#version: 0.2\na b\n", "c").version == BpeMerges::Version::v0_2);
  CHECK(BpeMerges::parse("a b\n", "c").version == BpeMerges::Version::v0_1);
  CHECK(BpeMerges::parse("a b\nb c\nc d", "c", 2).pairs.size() == 2);
  CHECK(parse_error("#version: 0.2\na b\nabc\n")
            .starts_with("codes:3: 'abc' is no merge (a codes file holds two symbols"));
  CHECK(parse_error("a b c\n").starts_with("codes:1: 'a b c' is no merge"));
  CHECK(parse_error("#version: 1.0\n") == "codes:1: codes of version '1.0' (known are 0.1 and 0.2)");
  CHECK_THROWS_WITH_AS(BpeMerges::read("/nonexistent/codes"),
                       "/nonexistent/codes: cannot open: No such file or directory", Error);
  CHECK_THROWS_AS(learn_bpe(WordCounts(), {.min_frequency = 0}), UsageError);
  CHECK(learn_bpe(WordCounts(), {}).merges.pairs.empty());
}
