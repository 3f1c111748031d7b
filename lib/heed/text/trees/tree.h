#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A node of a constituency tree: a phrase, such as (NP ...), or a pre-terminal, a word with its part of speech, such
/// as (NN house).
struct TreeNode {
  /// The label of the phrase, with its function tags, or the part of speech. The outermost bracket of a tree of the
  /// Penn Treebank has an empty label.
  std::string_view label;
  /// The word of a pre-terminal; empty for a phrase.
  std::string_view word;
  /// The number of the first node, in the order of the text, that does not belong to this node's subtree.
  std::size_t end = 0;
  /// The byte offset of the node's closing bracket in the text that was parsed.
  std::size_t close = 0;

  bool is_word() const { return !word.empty(); }
};

/// A constituency tree as the nodes in the order of their opening brackets. Node 0 is the root, and the subtree of node
/// i consists of the nodes from i to nodes[i].end - 1. The views point into the text that was parsed.
struct Tree {
  std::vector<TreeNode> nodes;
};

/// What is wrong with the text of a tree, and the column (in bytes, from 1) where it shows.
struct TreeMistake {
  std::size_t column = 1;
  std::string message;
};

/// Parses a tree in the bracket notation of the Penn Treebank, "(S (NP (DT the) (NN house)) (VP (VBZ burns)))", one
/// tree in the whole of `text`, and writes its nodes into `tree`. Words and labels consist of any bytes but white space
/// and round brackets. Returns the first mistake: brackets that do not match, a bracket without words, a word without a
/// label, more than one word in a bracket, words beside brackets, or text outside of the tree. `tree` is then
/// unspecified.
std::optional<TreeMistake> parse_tree(std::string_view text, Tree& tree);

/// Returns whether `text` is what parsers write for a sentence that they could not parse: nothing but white space and
/// brackets, such as "(())".
bool is_empty_tree(std::string_view text);

/// Returns a label without its function tags, indices and gaps: "NP" for "NP-SBJ-1" and "NP=2". A label that begins
/// with "-", such as -NONE- and -LRB-, is a label of its own and stays as it is.
std::string_view bare_label(std::string_view label);

}  // namespace heed
