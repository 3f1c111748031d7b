#include "heed/data/sampled_corpus.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "heed/text/bpe/bpe.h"
#include "heed/text/strings/vocabulary.h"

using namespace heed;

namespace {

/// Returns a BPE model that merges the letters of "abc" and "de". `pieces` are all pieces but the reserved ones.
TextModel model(const std::vector<std::string>& pieces) {
  BpeMerges merges = BpeMerges::parse("#version: 0.2\na b\nab c</w>\nd e</w>\n", "merges");
  std::vector<std::string> all{"<pad>", "<unk>", "<s>", "</s>"};
  all.insert(all.end(), pieces.begin(), pieces.end());
  TextSteps steps;
  return TextModel(steps, Subwords(std::make_shared<const BpeEncoder>(std::move(merges))),
                   std::make_shared<const Vocabulary>(all));
}

const std::vector<std::string> kPieces{"abc", "de", "a@@", "b@@", "c", "ab@@", "d@@", "e"};

/// Windows of pairs in memory: all in one window, or the even and the odd pairs of `pairs`.
struct Windows final : ParallelWindows {
  std::vector<ParallelCorpus> all;
  std::int64_t windows() const override { return std::ssize(all); }
  const ParallelCorpus& load(std::int64_t, std::int64_t window) override {
    return all[static_cast<std::size_t>(window)];
  }
};

ParallelCorpus pairs(const TextModel& text, int count) {
  ParallelCorpus out;
  for (int i = 0; i < count; ++i)
    out.add(text.encode_tokens("abc de abc"), text.encode_tokens(i % 2 == 0 ? "de" : "abc"), i + 1);
  return out;
}

std::string epoch_bytes(Windows& windows, const TextModel& text, const SubwordSampling& sampling, int threads,
                        std::int64_t epoch) {
  ThreadPool pool(threads);
  SampledCorpus corpus(windows, text, text, sampling, pool);
  return corpus.load(epoch, 0).bytes();
}

}  // namespace

TEST_CASE("pieces are drawn anew in each epoch, the same for any number of threads, and are pieces of the same text") {
  const TextModel text = model(kPieces);
  Windows windows;
  windows.all.push_back(pairs(text, 200));
  const SubwordSampling sampling{.dropout = 0.5};
  const std::string first = epoch_bytes(windows, text, sampling, 1, 0);
  CHECK(epoch_bytes(windows, text, sampling, 3, 0) == first);
  CHECK(epoch_bytes(windows, text, sampling, 1, 1) != first);
  CHECK(epoch_bytes(windows, text, {.dropout = 0.5, .seed = 2}, 1, 0) != first);
  ThreadPool pool(2);
  SampledCorpus corpus(windows, text, text, sampling, pool);
  CHECK(corpus.windows() == 1);
  CHECK(corpus.varies());
  std::int64_t whole_words = 0, cut_alike = 0;
  for (const std::int64_t epoch : {0, 1, 7}) {
    const ParallelCorpus& drawn = corpus.load(epoch, 0);
    REQUIRE(drawn.size() == 200);
    for (std::int64_t i = 0; i < drawn.size(); ++i) {
      CHECK(text.join(drawn.source(i)) == "abc de abc");
      CHECK(text.join(drawn.target(i)) == (i % 2 == 0 ? "de" : "abc"));
      CHECK(drawn.line(i) == i + 1);
      whole_words += drawn.target(i).size() == 1;
      cut_alike += drawn.source(i).size() == 3;
    }
  }
  // "de" stays whole with a probability of 1/2, "abc" with 1/4; all three words of a source with 1/32.
  CHECK(whole_words == doctest::Approx(600 * 0.375).epsilon(0.15));
  CHECK(cut_alike == doctest::Approx(600 / 32.0).epsilon(0.6));
}

TEST_CASE("the new pieces of a word have the word's links") {
  const TextModel text = model(kPieces);
  Windows windows;
  windows.all.emplace_back();
  windows.all[0].add(text.encode_tokens("abc de"), text.encode_tokens("de abc"), 1);
  windows.all[0].add_links(std::vector<PieceLink>{{1, 0}, {0, 1}});
  windows.all[0].add(text.encode_tokens("abc"), text.encode_tokens("de"), 2);
  windows.all[0].add_links({});
  ThreadPool pool(1);
  SampledCorpus letters(windows, text, text, {.dropout = 1}, pool);
  const ParallelCorpus& drawn = letters.load(0, 0);
  // a@@ b@@ c d@@ e, and d@@ e a@@ b@@ c
  using Links = std::vector<PieceLink>;
  const auto links = [&](std::int64_t pair) { return Links(drawn.links(pair).begin(), drawn.links(pair).end()); };
  CHECK(links(0) ==
        Links{{3, 0}, {4, 0}, {3, 1}, {4, 1}, {0, 2}, {1, 2}, {2, 2}, {0, 3}, {1, 3}, {2, 3}, {0, 4}, {1, 4}, {2, 4}});
  CHECK(links(1).empty());
  CHECK(epoch_bytes(windows, text, {.dropout = 0}, 2, 3) == windows.all[0].bytes());
}

TEST_CASE("without dropout nothing changes, and with all of it words are letters") {
  const TextModel text = model(kPieces);
  Windows windows;
  windows.all.push_back(pairs(text, 20));
  CHECK(epoch_bytes(windows, text, {.dropout = 0}, 2, 3) == windows.all[0].bytes());
  ThreadPool pool(1);
  SampledCorpus corpus(windows, text, text, {.dropout = 1}, pool);
  CHECK(corpus.load(0, 0).source(0).size() == 8);
}

TEST_CASE("a sentence keeps its pieces where others would be too many, or unknown, or its text is not known") {
  const TextModel text = model(kPieces);
  Windows windows;
  windows.all.push_back(pairs(text, 20));
  ThreadPool pool(1);
  // 8 pieces and </s>.
  SampledCorpus fits(windows, text, text, {.dropout = 1, .max_length = 9}, pool);
  CHECK(fits.load(0, 0).source(0).size() == 8);
  SampledCorpus too_long(windows, text, text, {.dropout = 1, .max_length = 8}, pool);
  CHECK(too_long.load(0, 0).source(0).size() == 3);
  CHECK(too_long.load(0, 0).target(0).size() == 2);

  const TextModel few = model({"abc", "de", "d@@", "e"});
  Windows lacking;
  lacking.all.push_back(pairs(few, 4));
  SampledCorpus unknown(lacking, few, few, {.dropout = 1}, pool);
  CHECK(unknown.load(0, 0).source(0).size() == 3);
  CHECK(unknown.load(0, 0).target(0).size() == 2);

  Windows foreign;
  foreign.all.emplace_back();
  const std::vector<std::int32_t> ids{4, kUnknownId};
  foreign.all[0].add(ids, ids, 1);
  SampledCorpus kept(foreign, text, text, {.dropout = 1}, pool);
  CHECK(kept.load(0, 0).source(0).size() == 2);
}

TEST_CASE("a sentence that was cropped within a word keeps its pieces: the text of the word is not known") {
  std::vector<std::string> pieces = kPieces;
  pieces.insert(pieces.end(), {"ab", "b"});
  const TextModel text = model(pieces);
  std::vector<std::int32_t> cropped = text.encode_tokens("abc");
  cropped.push_back(text.vocabulary().id("ab@@"));
  Windows windows;
  windows.all.emplace_back();
  windows.all[0].add(cropped, text.encode_tokens("abc ab"), 1);
  ThreadPool pool(1);
  SampledCorpus corpus(windows, text, text, {.dropout = 1}, pool);
  const ParallelCorpus& drawn = corpus.load(0, 0);
  CHECK(std::ranges::equal(drawn.source(0), cropped));
  CHECK(text.join(drawn.target(0)) == "abc ab");
  CHECK(drawn.target(0).size() == 5);
}

TEST_CASE("a sentence keeps its pieces, and its links, where its tokens end in the separator of BPE") {
  std::vector<std::string> pieces = kPieces;
  pieces.emplace_back("@@");
  const TextModel text = model(pieces);
  const std::vector<std::int32_t> two_words{text.vocabulary().id("de"), text.vocabulary().id("@@")};
  Windows windows;
  windows.all.emplace_back();
  windows.all[0].add(two_words, text.encode_tokens("de"), 1);
  windows.all[0].add_links(std::vector<PieceLink>{{1, 0}});
  ThreadPool pool(1);
  SampledCorpus corpus(windows, text, text, {.dropout = 1}, pool);
  const ParallelCorpus& drawn = corpus.load(0, 0);
  CHECK(std::ranges::equal(drawn.source(0), two_words));
  CHECK(std::ranges::equal(drawn.links(0), std::vector<PieceLink>{{1, 0}, {1, 1}}));
}
