#include "heed/text/trees/tree.h"

#include <doctest/doctest.h>

namespace heed {
namespace {

/// Returns the mistake in a text as "COLUMN: MESSAGE", or the tree's nodes as "LABEL/WORD-END", each with its number of
/// the node behind its subtree.
std::string parsed(std::string_view text) {
  Tree tree;
  if (const auto mistake = parse_tree(text, tree)) return std::to_string(mistake->column) + ": " + mistake->message;
  std::string out;
  for (const TreeNode& node : tree.nodes) {
    out += out.empty() ? "" : " ";
    out += std::string(node.label) + "/" + std::string(node.word) + "-" + std::to_string(node.end);
  }
  return out;
}

TEST_CASE("a tree in brackets is read in the order of its opening brackets") {
  CHECK(parsed("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))") == "S/-6 NP/-4 DT/the-3 NN/dog-4 VP/-6 VBZ/barks-6");
  CHECK(parsed("( (S (NN dog)) )") == "/-3 S/-3 NN/dog-3");
  CHECK(parsed("\t(NN\tdog ) ") == "NN/dog-1");
  CHECK(parsed("(S(-LRB- -LRB-)(: --)(NN größer))") == "S/-4 -LRB-/-LRB--2 :/---3 NN/größer-4");
}

TEST_CASE("each mistake in a tree is named with its column") {
  CHECK(parsed("") == "1: no tree");
  CHECK(parsed("   ") == "1: no tree");
  CHECK(parsed("dog") == "1: a tree begins with an opening bracket");
  CHECK(parsed(" )") == "2: a tree begins with an opening bracket");
  CHECK(parsed("(S (NN dog)") == "1: this bracket is never closed");
  CHECK(parsed("(S (NP (NN dog)") == "4: this bracket is never closed");
  CHECK(parsed("(S (NN dog)))") == "13: this closing bracket has no opening bracket");
  CHECK(parsed("(S (NN dog)) (S (NN cat))") == "14: the tree ends before this (a line holds one tree)");
  CHECK(parsed("(S (NN dog)) .") == "14: the tree ends before this (a line holds one tree)");
  CHECK(parsed("(S (NP ) (NN dog))") == "4: this bracket has no words");
  CHECK(parsed("()") == "1: this bracket has no words");
  CHECK(parsed("(S (NN hot dog))") == "12: this is the second word of a bracket (one word, one bracket)");
  CHECK(parsed("(S the (NN dog))") ==
        "8: this bracket stands beside a word (a word has a bracket of its own, with its part of speech)");
  CHECK(parsed("(S (NN dog) barks)") ==
        "13: this word stands beside brackets (a word has a bracket of its own, with its part of speech)");
  CHECK(parsed("(S ( (NN dog) barks))").starts_with("15: this word stands beside brackets"));
  CHECK(parsed("(S ((NN dog)) ( ))") == "15: this bracket has no words");
}

TEST_CASE("a tree as deep as the line is long is read, or refused, in time") {
  const std::size_t depth = 1000000;
  std::string text(depth, '(');
  CHECK(parsed(text) == std::to_string(depth) + ": this bracket is never closed");
  text += "N dog" + std::string(depth, ')');
  Tree tree;
  CHECK_FALSE(parse_tree(text, tree));
  CHECK(tree.nodes.size() == depth);
}

TEST_CASE("what a parser writes for a sentence without a parse is an empty tree") {
  CHECK(is_empty_tree(""));
  CHECK(is_empty_tree("(())"));
  CHECK(is_empty_tree("( )"));
  CHECK_FALSE(is_empty_tree("(S)"));
}

TEST_CASE("function tags are removed from labels") {
  CHECK(bare_label("NP-SBJ-1") == "NP");
  CHECK(bare_label("NP=2") == "NP");
  CHECK(bare_label("-NONE-") == "-NONE-");
  CHECK(bare_label("-LRB-") == "-LRB-");
  CHECK(bare_label("") == "");
}

}  // namespace
}  // namespace heed
