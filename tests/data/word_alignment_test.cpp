#include "heed/data/word_alignment.h"

#include <doctest/doctest.h>

#include <span>
#include <sstream>
#include <utility>

#include "heed/data/encode_corpus.h"
#include "heed/text/bpe/bpe.h"

using namespace heed;

namespace {

/// Returns a text model whose subwords are "c@@ b" for the word cb, and the letters a, b and d.
TextModel model() {
  TextSteps steps;
  steps.mode = TokenMode::none;
  const auto merges = BpeMerges::parse("#version: 0.2\na a</w>\n", "codes");
  const std::vector<std::string> pieces = {"<pad>", "<unk>", "<s>", "</s>", "a", "b", "c@@", "d"};
  return TextModel(steps, Subwords(std::make_shared<const BpeEncoder>(merges)),
                   std::make_shared<const Vocabulary>(pieces));
}

struct AlignedCorpus {
  ParallelCorpus corpus;
  CorpusReport report;
};

AlignedCorpus encode(const std::string& tsv, const std::string& alignment, const EncodeOptions& options = {}) {
  std::istringstream in(tsv), links(alignment);
  std::ostringstream messages;
  Log log(messages, "t");
  PairReader reader("-", in, InvalidUtf8::replace);
  LineReader alignments(links, "links");
  ThreadPool pool(2);
  const TextModel text = model();
  AlignedCorpus out;
  out.corpus =
      encode_corpus({.reader = reader, .source = text, .target = text, .options = options, .alignments = &alignments},
                    pool, log, out.report);
  return out;
}

struct Link {
  std::int32_t sequence, query, key;
  float share;
  bool operator==(const Link&) const = default;
};

std::vector<Link> links_of(const ParallelCorpus& corpus, const std::vector<std::int32_t>& pairs) {
  Batch batch;
  corpus.fill(pairs, batch);
  std::vector<Link> out;
  for (const AttentionLink& link : batch.alignment) out.push_back({link.sequence, link.query, link.key, link.share});
  return out;
}

}  // namespace

TEST_CASE("the pieces of a word get the word's links") {
  const std::vector<int> source = words_of_pieces(model(), "cb a d"), target = words_of_pieces(model(), "a cb");
  CHECK(source == std::vector<int>{0, 0, 1, 2});
  CHECK(target == std::vector<int>{0, 1, 1});
  using Links = std::vector<PieceLink>;
  CHECK(piece_links("1-0 0-1", source, target, {}) == Links{{2, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}});
  CHECK(piece_links(" 2-0  2-0 ", source, target, {}) == Links{{3, 0}});
  CHECK(piece_links("", source, target, {}).empty());
  // Only the first pieces of each side.
  CHECK(piece_links("1-0 0-1", source, target, {}, 2) == Links{{0, 1}, {1, 1}});
  CHECK(piece_links("1-0 0-1", source, target, {}, 0).empty());
  CHECK_THROWS_AS(piece_links("1-0 0-2", source, target, {}, 0), Error);
  // A piece that the vocabulary does not know belongs to its word all the same.
  CHECK(words_of_pieces(model(), "cbx b") == std::vector<int>{0, 0, 0, 1});
}

TEST_CASE("a token of a linear tree is linked to the word that is written next, and to the last word behind it") {
  const auto links = [](std::string_view tree) {
    std::vector<std::int64_t> sources;
    for (const AlignmentLink& link : links_to_leaves(tree)) {
      CHECK(link.target == std::ssize(sources));
      sources.push_back(link.source);
    }
    return sources;
  };
  CHECK(links("(S (NP DT NN )NP (VP VBZ )VP . )S") == std::vector<std::int64_t>{0, 0, 0, 1, 2, 2, 2, 3, 3, 3});
  CHECK(links("NN") == std::vector<std::int64_t>{0});
  CHECK(links("").empty());
}

TEST_CASE("the sentence of a tree needs a token for each word if its links are those of the words") {
  const auto text_model = [](TokenMode mode, std::vector<std::string> pieces) {
    TextSteps steps;
    steps.mode = mode;
    pieces.insert(pieces.begin(), {"<pad>", "<unk>", "<s>", "</s>"});
    return TextModel(steps, Subwords(SubwordType::words), std::make_shared<const Vocabulary>(pieces));
  };
  const TextModel trees = text_model(TokenMode::trees, {"(S", ")S", "NN", "VBZ"});
  const auto encode_trees = [&](TokenMode mode, const std::string& text) {
    std::istringstream in(text);
    std::ostringstream messages;
    Log log(messages, "t");
    PairReader reader = PairReader::of_trees("-", in, InvalidUtf8::replace);
    ThreadPool pool(1);
    CorpusReport report;
    const TextModel words = text_model(mode, {"dog", "barks"});
    return encode_corpus({.reader = reader, .source = words, .target = trees, .links_to_leaves = true}, pool, log,
                         report);
  };
  const std::string tree = "(S (NN dog) (VBZ barks))\n", genitive = "(S (NN dog's) (VBZ barks))\n",
                    with_space = "(S (NN old\u00A0dog) (VBZ barks))\n";
  const ParallelCorpus corpus = encode_trees(TokenMode::moses, tree);
  const std::span<const PieceLink> links = corpus.links(0);
  CHECK(std::vector(links.begin(), links.end()) == std::vector<PieceLink>{{0, 0}, {0, 1}, {1, 2}, {1, 3}});
  CHECK(encode_trees(TokenMode::ascii_words, tree + genitive + with_space).size() ==
        3);  // as build-vocab --mode leaves has it
  // Blank lines are left out.
  CHECK(encode_trees(TokenMode::moses, "\n" + tree + " \t\n").size() == 1);
  for (const auto& [mode, text] : {std::pair(TokenMode::moses, genitive), std::pair(TokenMode::words, with_space)})
    CHECK_THROWS_WITH_AS(encode_trees(mode, tree + text),
                         "standard input:2: the source vocabulary makes 3 tokens of the 2 words of this tree, but "
                         "--guided-alignment leaves needs a token for each word (take a source vocabulary of "
                         "build-vocab --mode leaves)",
                         Error);
  const std::vector<int> two{0, 1};
  CHECK_THROWS_WITH_AS(piece_links(std::vector<AlignmentLink>{{2, 0}}, two, two),
                       "internal: a link leads out of the words of its sentences", Error);
}

TEST_CASE("links follow their words when these are cut into other pieces") {
  using Links = std::vector<PieceLink>;
  // The words A B C and x y. B-x and C-y are linked; B becomes two pieces, C one, and y two.
  const std::vector<int> source_before{0, 1, 2, 2}, target_before{0, 1}, source_now{0, 0, 1, 1, 2}, target_now{0, 1, 1};
  const Links before{{1, 0}, {2, 1}, {3, 1}};
  CHECK(links_of_new_pieces(before, source_before, target_before, source_now, target_now) ==
        Links{{2, 0}, {3, 0}, {4, 1}, {4, 2}});
  CHECK(links_of_new_pieces(before, source_before, target_before, source_before, target_before) == before);
  CHECK(links_of_new_pieces({}, source_before, target_before, source_now, target_now).empty());
}

TEST_CASE("a line of an alignment that is wrong is an error that names file, line and column") {
  const std::vector<int> three{0, 1, 2};
  const auto read = [&](const std::string& line) { piece_links(line, three, three, {"links", 7}); };
  CHECK_THROWS_WITH_AS(read("0-0 1:2"), "links:7:5: '1:2' is no link, source-target from 0 (such as 0-0 1-2)", Error);
  CHECK_THROWS_WITH_AS(read("-1-0"), "links:7:1: '-1-0' is no link, source-target from 0 (such as 0-0 1-2)", Error);
  CHECK_THROWS_WITH_AS(read("0-0 0-3"),
                       "links:7:5: '0-3' leads out of the sentences of 3 and 3 words (align the same two texts)",
                       Error);
  CHECK_THROWS_AS(read("99999999999999999999-0"), Error);
}

TEST_CASE("a corpus keeps the links of its pairs, and a batch shares a target piece among its source pieces") {
  const AlignedCorpus out = encode("cb a\ta cb\n\td\nd\td\na b\tb a\n", "1-0 0-1\n\n\n0-1 1-1\n");
  REQUIRE(out.corpus.size() == 3);
  CHECK(links_of(out.corpus, {2, 1, 0}) == std::vector<Link>{{0, 1, 0, 0.5F},
                                                             {0, 1, 1, 0.5F},
                                                             {2, 0, 2, 1},
                                                             {2, 1, 0, 0.5F},
                                                             {2, 1, 1, 0.5F},
                                                             {2, 2, 0, 0.5F},
                                                             {2, 2, 1, 0.5F}});
  CHECK(links_of(out.corpus, {1}).empty());
  const auto fingerprint = [](const std::string& links) { return encode("a b\tb a\n", links).corpus.fingerprint(); };
  CHECK(fingerprint("0-1 1-0\n") == fingerprint("1-0 0-1\n"));
  CHECK(fingerprint("0-1 1-0\n") != fingerprint("0-0 1-1\n"));
}

TEST_CASE("a cropped pair loses the links of the pieces that are cut off") {
  const AlignedCorpus out =
      encode("a b d\td b a\n", "0-2 1-1 2-0\n", {.max_length = 3, .on_long = OnLong::crop, .pretokenized = true});
  CHECK(links_of(out.corpus, {0}) == std::vector<Link>{{0, 1, 1, 1}});
}

TEST_CASE("the alignment of a pair that is too long is checked, though the pair is left out") {
  const EncodeOptions skip{.max_length = 3, .on_long = OnLong::skip, .pretokenized = true};
  CHECK(encode("a b d\td b a\na\ta\n", "0-2 1-1 2-0\n0-0\n", skip).corpus.size() == 1);
  CHECK_THROWS_WITH_AS(encode("a b d\td b a\na\ta\n", "0-2 1-1 2-3\n0-0\n", skip),
                       "links:1:9: '2-3' leads out of the sentences of 3 and 3 words (align the same two texts)",
                       Error);
}

TEST_CASE("there are as many alignments as pairs") {
  CHECK_THROWS_WITH_AS(
      encode("a\ta\nb\tb\n", "0-0\n"),
      "links: has 1 line, but standard input has more (each sentence pair needs its alignment, if only an empty line)",
      Error);
  CHECK_THROWS_WITH_AS(encode("a\ta\n", "0-0\n0-0\n"),
                       "links: has more lines than standard input, which has 1 line (each sentence pair needs its "
                       "alignment, if only an empty line)",
                       Error);
  CHECK_THROWS_WITH_AS(encode("a\ta\nb\tb\n", "0-0\n0-1\n"),
                       "links:2:1: '0-1' leads out of the sentences of 1 and 1 words (align the same two texts)",
                       Error);
}
