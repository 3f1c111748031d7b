#include "heed/text/strings/word_counts.h"

#include <doctest/doctest.h>

#include <map>
#include <sstream>

#include "text/listed.h"

using namespace heed;

namespace {

/// Returns a RunOnThreads for tests that runs a function for each thread number on the calling thread, from the last
/// number to the first.
RunOnThreads backwards(int threads) {
  return [threads](const std::function<void(int)>& function) {
    for (int thread = threads; thread-- > 0;) function(thread);
  };
}

}  // namespace

TEST_CASE("words are counted in the order of first occurrence, whatever their length") {
  std::vector<std::pair<std::string, std::int64_t>> expected;
  for (std::size_t size = 1; size < 600; size += size < 40 ? 1 : 37) expected.emplace_back(std::string(size, 'a'), 0);
  for (std::size_t i = 0; i < 5000; ++i) expected.emplace_back("w" + std::to_string(i * 7919), 0);
  expected.emplace_back(std::string(1000000, 'x'), 0);
  expected.emplace_back(std::string(15, '\0'), 0);
  expected.emplace_back(std::string(16, '\0'), 0);
  expected.emplace_back("last", 0);
  WordCounts words;
  for (int round = 0; round < 3; ++round)
    for (auto& [word, count] : expected) {
      words.add(word, round + static_cast<std::int64_t>(word.size()));
      count += round + static_cast<std::int64_t>(word.size());
    }
  CHECK(listed(words) == expected);
  std::vector<std::pair<std::string, std::int64_t>> taken;
  words.consume([&](std::string_view word, std::int64_t count) { taken.emplace_back(word, count); });
  CHECK(taken == expected);
  CHECK(words.size() == 0);
  words.add("again");
  CHECK(listed(words) == std::vector<std::pair<std::string, std::int64_t>>{{"again", 1}});
}

TEST_CASE("words are found again after the table has grown past what it gives back at a time") {
  const auto word = [](std::int64_t i) { return "w" + std::to_string(i * 7919); };
  WordCounts words;
  for (std::int64_t i = 0; i < 600000; ++i) words.add(word(i), i);
  for (std::int64_t i = 0; i < 600000; ++i) words.add(word(i), 1);
  REQUIRE(words.size() == 600000);
  bool equal = true;
  for (std::int64_t i = 0; i < 600000; ++i) {
    const auto at = static_cast<std::size_t>(i);
    equal &= words.word(at) == word(i) && words.count(at) == i + 1;
  }
  CHECK(equal);
}

TEST_CASE("counts beyond 32 bits") {
  WordCounts words;
  const WordCounts::Place place = words.add("a", 0xFFFFFFFE);
  CHECK(words.count(0) == 0xFFFFFFFE);
  words.add_to(place, 1);
  CHECK(words.count(0) == 0xFFFFFFFF);
  words.add("a", std::int64_t{1} << 40);
  CHECK(words.count(0) == 0xFFFFFFFF + (std::int64_t{1} << 40));
  CHECK(words.total() == words.count(0));
}

TEST_CASE("words counted on several threads: the counts, order and lines of a map on one") {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "w" + std::to_string(i * i % 911) + (i % 7 == 0 ? " \n\n" : "  x ");
  text += std::string(70, 'l') + "\n" + std::string(200, ' ') + "\n";
  const std::vector<std::string_view> pieces = {text, "a b\n", "\n", "", " c", text, std::string_view(text).substr(5)};
  std::vector<std::pair<std::string, std::int64_t>> expected;
  std::map<std::string, std::size_t> numbers;
  std::int64_t sentences = 0, total = 0;
  for (const std::string_view piece : pieces) {
    std::istringstream lines{std::string(piece)};
    for (std::string line; std::getline(lines, line);) {
      std::istringstream in(line);
      std::int64_t words = 0;
      for (std::string word; in >> word; ++words) {
        const auto [found, is_new] = numbers.emplace(word, expected.size());
        if (is_new) expected.emplace_back(word, 0);
        ++expected[found->second].second;
      }
      sentences += words > 0;
      total += words;
    }
  }
  for (const int threads : {1, 2, 3, 300}) {
    CAPTURE(threads);
    WordCounter counter(threads);
    counter.add(pieces, backwards(threads));
    CHECK(counter.sentences() == sentences);
    const WordCounts words = counter.take();
    CHECK(listed(words) == expected);
    CHECK(words.total() == total);
  }
}
