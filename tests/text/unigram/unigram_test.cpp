#include "heed/text/unigram/unigram.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "heed/base/error.h"
#include "heed/base/utf8.h"
#include "heed/text/bpe/bpe.h"
#include "heed/text/unigram/sentencepiece.h"
#include "heed/text/unigram/unigram_learner.h"

using namespace heed;
using Kind = SentencePieceModel::Kind;

namespace {

SentencePieceModel model_of(std::vector<SentencePieceModel::Piece> pieces) {
  SentencePieceModel model;
  model.pieces = {{"<unk>", 0, Kind::unknown}};
  for (auto& piece : pieces) model.pieces.push_back(std::move(piece));
  return model;
}

std::string shown(std::string_view text, const std::vector<PieceSpan>& spans) {
  std::string out;
  std::size_t begin = 0;
  for (const PieceSpan& span : spans) {
    out.append(out.empty() ? "" : " ").append(text.substr(begin, span.end - begin));
    begin = span.end;
  }
  return out;
}

std::string best(const UnigramModel& model, std::string_view text) {
  std::vector<PieceSpan> spans;
  model.segment(text, spans);
  return shown(text, spans);
}

WordCounts some_words() {
  WordCounts words;
  const std::vector<std::string> starts = {"wal", "tal", "jum", "pla", "cal", "wor"}, middles = {"k", "p", "y", "l"},
                                 ends = {"", "s", "ed", "ing", "er"};
  for (const std::string& start : starts)
    for (const std::string& middle : middles)
      for (const std::string& end : ends) words.add(start + middle + end, 10);
  return words;
}

}  // namespace

TEST_CASE("the most probable segmentation") {
  const UnigramModel model(model_of({{"a", -2}, {"b", -2}, {"ab", -3}, {"abc", -9}, {"c", -2.5f}}));
  CHECK(best(model, "ab") == "ab");
  CHECK(best(model, "abc") == "ab c");
  CHECK(best(model, "xab") == "x ab");
  CHECK(best(model, "") == "");
  // Of two segmentations with equal scores, the one whose last piece starts earlier is taken.
  const UnigramModel ties(model_of({{"a", -1}, {"b", -1}, {"ab", -2}}));
  CHECK(best(ties, "ab") == "ab");
  // User-defined pieces are cut out before the search, from left to right, the longest one first.
  const UnigramModel user(
      model_of({{"a", -1}, {"b", -1}, {"abcd", -1}, {"c", -1}, {"d", -1}, {"bc", 0, Kind::user_defined}}));
  CHECK(best(user, "abcd") == "a bc d");
  // A piece of the kind `unused` is in no segmentation.
  const UnigramModel unused(model_of({{"a", -1}, {"b", -1}, {"ab", -1, Kind::unused}}));
  CHECK(best(unused, "ab") == "a b");
}

TEST_CASE("the n best are all segmentations in order, each once") {
  const UnigramModel model(model_of({{"a", -2}, {"b", -2.5f}, {"ab", -3}, {"ba", -4}, {"aba", -8}}));
  const std::string text = "aba";
  std::vector<std::string> found;
  for (const PiecePath& path : model.n_best(text, 10)) found.push_back(shown(text, path.spans));
  CHECK(found == std::vector<std::string>{"ab a", "a ba", "a b a", "aba"});
  CHECK(model.n_best(text, 1).front().score == -5);
  CHECK(model.n_best(text, 2).size() == 2);
  CHECK(model.n_best("", 3).size() == 1);
}

TEST_CASE("samples have the probabilities of the model to the power of alpha") {
  const UnigramModel model(model_of({{"a", -2}, {"b", -2.5f}, {"ab", -3}, {"ba", -4}, {"aba", -8}}));
  const std::string text = "aba";
  for (const double alpha : {0.0, 0.5, 1.0}) {
    std::map<std::string, double> expected, drawn;
    double sum = 0;
    for (const PiecePath& path : model.n_best(text, 10)) {
      expected[shown(text, path.spans)] = std::exp(alpha * static_cast<double>(path.score));
      sum += std::exp(alpha * static_cast<double>(path.score));
    }
    constexpr int kDraws = 20000;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      SubwordSampler sampler{.alpha = alpha, .stream = RandomStream(7, RandomUse::subwords, i)};
      const PiecePath path = model.sample(text, sampler);
      drawn[shown(text, path.spans)] += 1.0 / kDraws;
    }
    for (const auto& [pieces, weight] : expected) {
      CAPTURE(pieces);
      CHECK(drawn[pieces] == doctest::Approx(weight / sum).epsilon(0.06));
    }
    CHECK(drawn.size() == expected.size());
  }
}

TEST_CASE("the n best of a long line end, with the best paths first") {
  const UnigramModel model(model_of({{"a", -2}, {"aa", -3}, {"aaa", -4}}));
  const std::string text(3000, 'a');
  const auto paths = model.n_best(text, 8);
  std::vector<PieceSpan> spans;
  model.segment(text, spans);
  REQUIRE(!paths.empty());
  CHECK(paths.front().spans.size() == spans.size());
}

TEST_CASE("a learnt unigram model has the parts that many words share") {
  const UnigramPieces pieces = learn_unigram(some_words(), {.size = 40, .character_coverage = 1});
  const auto score = [&](const std::string& wanted) {
    for (const auto& [piece, value] : pieces)
      if (piece == wanted) return value;
    return 1.0f;
  };
  for (const std::string part : {"\u2581walk", "\u2581talk", "\u2581calk", "\u2581jump"}) {
    CAPTURE(part);
    CHECK(score(part) < 0);
  }
  double sum = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    sum += std::exp(static_cast<double>(pieces[i].second));
    if (i > 0) CHECK(pieces[i].second <= pieces[i - 1].second);
  }
  CHECK(pieces.size() <= 40);
  CHECK(sum == doctest::Approx(1).epsilon(0.1));
  // Any number of threads learns the same pieces.
  CHECK(pieces == learn_unigram(some_words(), {.size = 40, .character_coverage = 1, .threads = 3}));
}

TEST_CASE("counts of 10^12 give the pieces of a millionth of these counts") {
  const auto learn = [](std::int64_t count) {
    WordCounts words;
    for (std::size_t i = 0; i < some_words().size(); ++i) words.add(some_words().word(i), count);
    return learn_unigram(words, {.size = 40, .character_coverage = 1});
  };
  const UnigramPieces small = learn(1'000'000), large = learn(1'000'000'000'000);
  REQUIRE(small.size() == large.size());
  for (std::size_t i = 0; i < small.size(); ++i) {
    CHECK(small[i].first == large[i].first);
    // Characters that occur within longer pieces only have the least count, which does not grow with the text.
    if (small[i].second > -10) CHECK(large[i].second == doctest::Approx(small[i].second).epsilon(1e-4));
  }
}

TEST_CASE("learning is indifferent to how long and how strange words are") {
  WordCounts words = some_words();
  words.add(std::string(5000, 'x') + "y", 3);
  std::string all;
  for (char32_t c = 0x4E00; c < 0x4E00 + 2000; ++c) append_utf8(all, c);
  words.add(all);
  words.add("a\u2581b \xEF\xBF\xBD");
  const UnigramPieces pieces = learn_unigram(words, {.size = 2100, .character_coverage = 1});
  CHECK(pieces.size() <= 2100);
  for (const auto& [piece, score] : pieces) {
    CHECK(std::isfinite(score));
    CHECK(piece.find("\u2581", 1) == std::string::npos);
  }
  CHECK_THROWS_WITH_AS(learn_unigram(words, {.size = 100, .character_coverage = 1}),
                       doctest::Contains("different characters, more than there is room for (100)"), Error);
  CHECK(learn_unigram(words, {.size = 60, .character_coverage = 0.5}).size() <= 60);
}

TEST_CASE("user-defined symbols are no part of what is learnt") {
  WordCounts words;
  words.add("ab<x>cd", 50);
  for (const auto& [piece, score] :
       learn_unigram(words, {.size = 30, .character_coverage = 1, .user_symbols = {"<x>"}}))
    CHECK(piece.find_first_of("<x>") == std::string::npos);
}
