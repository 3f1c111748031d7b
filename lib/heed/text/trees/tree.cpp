#include "heed/text/trees/tree.h"

#include "heed/base/ascii.h"

namespace heed {
namespace {

bool is_bracket(char c) {
  return c == '(' || c == ')';
}

/// Returns the place of the first byte of `text` from `at` on that is not white space.
std::size_t skip_tree_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_ascii_space(text[at])) ++at;
  return at;
}

/// Returns the run of bytes from `at` on up to white space or a bracket; it may be empty.
std::string_view read_symbol(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && !is_ascii_space(text[end]) && !is_bracket(text[end])) ++end;
  return text.substr(at, end - at);
}

}  // namespace

std::optional<TreeMistake> parse_tree(std::string_view text, Tree& tree) {
  struct Open {
    std::size_t node, column;
  };
  tree.nodes.clear();
  std::vector<Open> open;
  const auto mistake = [](std::size_t at, std::string message) { return TreeMistake{at + 1, std::move(message)}; };
  std::size_t at = skip_tree_space(text, 0);
  if (at == text.size()) return mistake(0, "no tree");
  if (text[at] != '(') return mistake(at, "a tree begins with an opening bracket");
  while (at < text.size()) {
    if (text[at] == ')') {
      if (open.empty()) return mistake(at, "this closing bracket has no opening bracket");
      const auto [node, column] = open.back();
      if (tree.nodes.size() == node + 1 && !tree.nodes[node].is_word())
        return mistake(column - 1, "this bracket has no words");
      tree.nodes[node].end = tree.nodes.size();
      tree.nodes[node].close = at;
      open.pop_back();
      at = skip_tree_space(text, at + 1);
      if (open.empty() && at < text.size() && text[at] != ')')
        return mistake(at, "the tree ends before this (a line holds one tree)");
      continue;
    }
    if (text[at] == '(') {
      if (!open.empty() && tree.nodes[open.back().node].is_word())
        return mistake(at,
                       "this bracket stands beside a word (a word has a bracket of its own, with its part of speech)");
      const std::string_view label = read_symbol(text, at + 1);
      open.push_back({tree.nodes.size(), at + 1});
      tree.nodes.push_back({label, {}, 0, 0});
      at = skip_tree_space(text, at + 1 + label.size());
      continue;
    }
    TreeNode& node = tree.nodes[open.back().node];
    if (node.is_word()) return mistake(at, "this is the second word of a bracket (one word, one bracket)");
    if (tree.nodes.size() > open.back().node + 1)
      return mistake(at, "this word stands beside brackets (a word has a bracket of its own, with its part of speech)");
    if (node.label.empty()) return mistake(at, "this word has no part of speech");
    node.word = read_symbol(text, at);
    at = skip_tree_space(text, at + node.word.size());
  }
  if (!open.empty()) return mistake(open.back().column - 1, "this bracket is never closed");
  return {};
}

bool is_empty_tree(std::string_view text) {
  for (const char c : text)
    if (!is_ascii_space(c) && !is_bracket(c)) return false;
  return true;
}

std::string_view bare_label(std::string_view label) {
  return label.starts_with('-') ? label : label.substr(0, label.find_first_of("-="));
}

}  // namespace heed
