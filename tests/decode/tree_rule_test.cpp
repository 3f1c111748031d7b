#include "heed/decode/tree_rule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "heed/text/trees/linear_tree.h"
#include "random_model.h"
#include "table_model.h"

namespace heed {
namespace {

// Ids: 4 "(S", 5 ")S", 6 "(NP", 7 ")NP", 8 "NN", 9 "DT", 10 "(X", which has no closing bracket, 11 "<unused0>".
const Vocabulary& labels() {
  static const Vocabulary vocabulary(
      {"<pad>", "<unk>", "<s>", "</s>", "(S", ")S", "(NP", ")NP", "NN", "DT", "(X", "<unused0>"});
  return vocabulary;
}

/// Returns the tokens that a rule for one source allows after a history.
Ids allowed(TreeRule::Shape shape, const Ids& history) {
  const TreePieces pieces(labels());
  const TreeRule rule(pieces, {{1, 1}, shape});
  std::vector<float> scores(static_cast<std::size_t>(labels().size()), 1.0F);
  NextTokens next(scores, 1 + std::log(12.0F));
  rule.apply(1, history, next);
  Ids out;
  for (std::int32_t id = 0; id < labels().size(); ++id)
    if (std::isfinite(scores[static_cast<std::size_t>(id)])) out.push_back(id);
  return out;
}

TEST_CASE("after each beginning of a tree, only what can go on to a tree is allowed") {
  CHECK(allowed({2, 100}, {}) == Ids{4, 6, 8, 9});
  CHECK(allowed({2, 100}, {4}) == Ids{4, 6, 8, 9});           // (S: never closed while it is empty
  CHECK(allowed({2, 100}, {4, 8}) == Ids{4, 5, 6, 8, 9});     // (S NN
  CHECK(allowed({2, 100}, {4, 6, 8}) == Ids{4, 6, 7, 8, 9});  // (S (NP NN: closed by its own label
  CHECK(allowed({2, 100}, {4, 8, 9}) == Ids{5});              // all words are there
  CHECK(allowed({2, 100}, {4, 8, 9, 5}) == Ids{kEndId});
  CHECK(allowed({2, 100}, {4, 8, 5}) == Ids{4, 6, 8, 9});  // a second tree has the other word
  CHECK(allowed({1, 100}, {8}) == Ids{kEndId});
}

TEST_CASE("a bracket is opened only while there is room to close it") {
  CHECK(allowed({2, 2}, {}) == Ids{8, 9});
  CHECK(allowed({2, 3}, {}) == Ids{8, 9});
  CHECK(allowed({2, 4}, {}) == Ids{4, 6, 8, 9});
  CHECK(allowed({2, 4}, {4}) == Ids{8, 9});
  CHECK(allowed({2, 4}, {4, 8}) == Ids{5, 8, 9});
  CHECK(allowed({2, 5}, {4, 8}) == Ids{5, 8, 9});
  CHECK(allowed({2, 6}, {4, 8}) == Ids{4, 5, 6, 8, 9});
}

TEST_CASE("a vocabulary without parts of speech can write no tree") {
  CHECK_THROWS_WITH(TreePieces(Vocabulary({"<pad>", "<unk>", "<s>", "</s>", "(S", ")S"})),
                    "the vocabulary of trees has no parts of speech (build-vocab --type trees makes one)");
}

TEST_CASE("every search of a random model finds trees over the words alone, whatever it would rather write") {
  const TreePieces pieces(labels());
  for (std::uint64_t seed = 1; seed <= (kTestsBriefly ? 1 : 3); ++seed) {
    const RandomModel random(labels().size(), 1, seed);
    for (const SearchKind kind : {SearchKind::beam, SearchKind::sample}) {
      SearchOptions options{.search = kind, .beam_size = 4, .n_best = 4, .seed = seed};
      options = without_length_limit(options);
      const std::vector<int> words = {1, 2, 7, kTestsBriefly ? 40 : 400, 30};
      std::vector<TreeRule::Shape> shapes;
      for (const int count : words) shapes.push_back({count, 8 * count});
      shapes.back().longest = words.back();  // no room for a single bracket
      const TreeRule rule(pieces, shapes);
      NetworkStepModel model(*random.model, *random.parameters, Precision::float32);
      const auto found = search(model, sources({4, 5, 6, 7, 8}), options, &rule);
      for (std::size_t s = 0; s < words.size(); ++s) {
        CHECK(found[s].size() == 4);
        for (const Hypothesis& hypothesis : found[s]) {
          std::string linear;
          for (const std::int32_t id : hypothesis.ids) linear.append(" ").append(labels().piece(id));
          const std::vector<std::string_view> given(static_cast<std::size_t>(words[s]), "w");
          CHECK_NOTHROW(tree_of_linear(linear, given));
          CHECK(std::ssize(hypothesis.ids) <= shapes[s].longest);
        }
      }
    }
  }
}

TEST_CASE("exhaustive search finds the same trees for sources in a batch as for each alone") {
  const TreePieces pieces(labels());
  const RandomModel random(labels().size(), 1, 5);
  SearchOptions options{.search = SearchKind::exhaustive, .normalize = 0, .max_expansions = 1000000};
  options = without_length_limit(options);
  const std::vector<TreeRule::Shape> shapes = {{3, 6}, {1, 3}, {2, 4}};
  NetworkStepModel model(*random.model, *random.parameters, Precision::float32);
  const TreeRule rule(pieces, shapes);
  const auto found = search(model, sources({4, 5, 6}), options, &rule);
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const TreeRule alone(pieces, {shapes[s]});
    const auto expected = search(model, sources({static_cast<std::int32_t>(4 + s)}), options, &alone);
    CHECK(found[s].at(0).ids == expected.at(0).at(0).ids);
    std::string linear;
    for (const std::int32_t id : found[s].at(0).ids) linear.append(" ").append(labels().piece(id));
    CHECK_NOTHROW(
        tree_of_linear(linear, std::vector<std::string_view>(static_cast<std::size_t>(shapes[s].words), "w")));
  }
}

}  // namespace
}  // namespace heed
