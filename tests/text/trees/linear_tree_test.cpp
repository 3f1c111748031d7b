#include "heed/text/trees/linear_tree.h"

#include <doctest/doctest.h>

#include "heed/base/error.h"
#include "heed/text/text_model.h"

namespace heed {
namespace {

std::string linear(std::string_view line, bool function_tags = false) {
  std::string out;
  linearize_tree(line, function_tags, out);
  return out;
}

std::string leaves(std::string_view line) {
  std::string out;
  tree_leaves(line, out);
  return out;
}

std::string back(std::string_view tokens, std::string_view words) {
  return tree_of_linear(tokens, words_of_line(words));
}

TEST_CASE("a linear tree has brackets with labels, and a part of speech for each word") {
  CHECK(linear("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))") == "(S (NP DT NN )NP (VP VBZ )VP . )S");
  CHECK(linear("( (S (NN dog)) )") == "(S NN )S");
  CHECK(linear("(S (NN dog))") == "(S NN )S");
  CHECK(linear("(TOP (UH yes) (. .))") == "UH .");
  CHECK(linear("(NN dog)") == "NN");
  CHECK(linear("(S (TOP (NN dog)))") == "(S (TOP NN )TOP )S");
}

TEST_CASE("traces go with the phrases that hold nothing else, and function tags unless they are wanted") {
  const char* const tree =
      "(S (NP-SBJ-1 (PRP it)) (VP (VBZ seems) (NP (-NONE- *T*-1)) (SBAR (-NONE- 0) (S (NP=2 (-LRB- -LRB-))))) (X "
      "(-NONE- *)))";
  CHECK(linear(tree) == "(S (NP PRP )NP (VP VBZ (SBAR (S (NP -LRB- )NP )S )SBAR )VP )S");
  CHECK(linear(tree, true) == "(S (NP-SBJ-1 PRP )NP-SBJ-1 (VP VBZ (SBAR (S (NP=2 -LRB- )NP=2 )S )SBAR )VP )S");
  CHECK(leaves(tree) == "it seems -LRB-");
}

TEST_CASE("tokens know their place in the tree") {
  const std::string tree = "( (S (NP-SBJ (DT the)\t(NN  gr\u00F6\u00DFe)) (VP (-NONE- *) )(. .)) )";
  const auto parts = [&](const std::vector<ByteSpan>& spans) {
    std::string out;
    for (const ByteSpan span : spans) out += tree.substr(span.begin, span.end - span.begin) + "|";
    return out;
  };
  std::string tokens;
  std::vector<ByteSpan> spans = {{7, 9}};
  linearize_tree(tree, false, tokens, &spans);
  CHECK(tokens == "(S (NP DT NN )NP . )S");
  CHECK(parts(spans) == "(S|(NP|DT|NN|)|.|)|");
  CHECK(spans[4].end == tree.find("))") + 2);
  CHECK(spans.back().end == tree.size() - 2);
  linearize_tree(tree, true, tokens, &spans);
  CHECK(parts(spans) == "(S|(NP-SBJ|DT|NN|)|.|)|");
  tree_leaves(tree, tokens, &spans);
  CHECK(tokens == "the gr\u00F6\u00DFe .");
  CHECK(parts(spans) == "the|gr\u00F6\u00DFe|.|");
  CHECK(spans.back().begin == tree.rfind('.'));
}

TEST_CASE("a blank line has no tree, and gives no tokens") {
  for (const char* const blank : {"", " \t"}) {
    CHECK(linear(blank).empty());
    CHECK(leaves(blank).empty());
    std::string tokens = "before";
    std::vector<ByteSpan> spans = {{7, 9}};
    linearize_tree(blank, false, tokens, &spans);
    CHECK(tokens.empty());
    CHECK(spans.empty());
  }
}

TEST_CASE("a linear tree and its words are the tree again") {
  const char* const tree = "(TOP (S (NP (DT the) (NN größe)) (VP (VBZ barks)) (. .)))";
  CHECK(back(linear(tree), leaves(tree)) == tree);
  CHECK(back("UH .", "yes !") == "(TOP (UH yes) (. !))");
  CHECK(back("(S NN NN NN )S", "( f(x) \tb) ") == "(TOP (S (NN -LRB-) (NN f-LRB-x-RRB-) (NN b-RRB-)))");
  for (const char* const broken : {"(S NN", "(S NN )NP", "NN NN", ")S NN", ""})
    CHECK_THROWS_WITH(back(broken, "dog"), "internal: a linear tree does not fit its words");
}

TEST_CASE("what is no tree is an error with its column") {
  const auto message = [](const char* line) -> std::string {
    try {
      linear(line);
    } catch (const LineError& error) {
      return error.at("f", 7, line).what();
    }
    return {};
  };
  CHECK(message("(S (NN größe) x)") ==
        "f:7:15: this word stands beside brackets (a word has a bracket of its own, with "
        "its part of speech)");
  CHECK(message(")") == "f:7:1: a tree begins with an opening bracket");
  CHECK(message("(S (-NONE- *))") == "f:7:1: the tree has no words but traces");
}

TEST_CASE("the modes trees and leaves are text steps") {
  const TextPipeline trees({.mode = TokenMode::trees}), leaf({.mode = TokenMode::leaves});
  const TextPipeline tagged({.mode = TokenMode::trees, .function_tags = true});
  CHECK(trees.tokenize("(S (NP-SBJ (NN dog)))") == "(S (NP NN )NP )S");
  CHECK(tagged.tokenize("(S (NP-SBJ (NN dog)))") == "(S (NP-SBJ NN )NP-SBJ )S");
  CHECK(leaf.tokenize("(S (NP-SBJ (NN dog)))") == "dog");
  CHECK(trees.detokenize("(S NN )S") == "(S NN )S");
}

}  // namespace
}  // namespace heed
