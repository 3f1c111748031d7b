#include "heed/text/trees/linear_tree.h"

#include <algorithm>

#include "heed/base/ascii.h"
#include "heed/base/error.h"
#include "heed/base/log.h"
#include "heed/text/trees/tree.h"

namespace heed {
namespace {

constexpr std::string_view kTrace = "-NONE-";
constexpr std::string_view kRoots[] = {"", "TOP", "ROOT", "S1"};

/// Parses a line and returns, for each node, whether its subtree has a word that is no trace. A blank line has no
/// nodes.
std::vector<bool> read_tree(std::string_view line, Tree& tree) {
  tree.nodes.clear();
  if (std::ranges::all_of(line, is_ascii_space)) return {};
  if (const auto mistake = parse_tree(line, tree)) throw LineError(mistake->column, mistake->message);
  std::vector<bool> kept(tree.nodes.size());
  // A node stands behind its parent in `nodes`, so that a loop from the end visits the children of a node before the
  // node.
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    const TreeNode& node = tree.nodes[i];
    if (node.is_word()) {
      kept[i] = node.label != kTrace;
      continue;
    }
    for (std::size_t child = i + 1; child < node.end && !kept[i]; child = tree.nodes[child].end) kept[i] = kept[child];
  }
  if (!kept[0]) throw LineError(1, "the tree has no words but traces");
  return kept;
}

void add_token(std::string& out, std::string_view bracket, std::string_view label) {
  if (!out.empty()) out += ' ';
  out.append(bracket).append(label);
}

/// Returns the place of `part`, a view into `line`, in `line`.
ByteSpan span_of(std::string_view line, std::string_view part) {
  const auto begin = static_cast<std::size_t>(part.data() - line.data());
  return {begin, begin + part.size()};
}

}  // namespace

void linearize_tree(std::string_view line, bool function_tags, std::string& out, std::vector<ByteSpan>* spans) {
  thread_local Tree tree;
  const std::vector<bool> kept = read_tree(line, tree);
  out.clear();
  if (spans) spans->clear();
  const auto label = [&](const TreeNode& node) { return function_tags ? node.label : bare_label(node.label); };
  if (kept.empty()) return;
  const bool has_root = !tree.nodes[0].is_word() &&
                        std::find(std::begin(kRoots), std::end(kRoots), tree.nodes[0].label) != std::end(kRoots);
  std::vector<std::size_t> open;
  for (std::size_t i = has_root ? 1 : 0; i <= tree.nodes.size(); ++i) {
    for (; !open.empty() && tree.nodes[open.back()].end == i; open.pop_back()) {
      const TreeNode& node = tree.nodes[open.back()];
      add_token(out, ")", label(node));
      if (spans) spans->push_back({node.close, node.close + 1});
    }
    if (i == tree.nodes.size() || !kept[i]) continue;
    const TreeNode& node = tree.nodes[i];
    const std::string_view bracket = node.is_word() ? "" : "(", name = node.is_word() ? node.label : label(node);
    add_token(out, bracket, name);
    if (spans) {
      const ByteSpan span = span_of(line, name);
      spans->push_back({span.begin - bracket.size(), span.end});
    }
    if (!node.is_word()) open.push_back(i);
  }
}

void tree_leaves(std::string_view line, std::string& out, std::vector<ByteSpan>* spans) {
  thread_local Tree tree;
  const std::vector<bool> kept = read_tree(line, tree);
  out.clear();
  if (spans) spans->clear();
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (!tree.nodes[i].is_word() || !kept[i]) continue;
    add_token(out, "", tree.nodes[i].word);
    if (spans) spans->push_back(span_of(line, tree.nodes[i].word));
  }
}

std::vector<std::string_view> words_of_line(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t start = at;
    while (at < line.size() && !is_ascii_space(line[at])) ++at;
    if (at > start) words.push_back(line.substr(start, at - start));
    while (at < line.size() && is_ascii_space(line[at])) ++at;
  }
  return words;
}

std::string word_in_tree(std::string_view word) {
  std::string out;
  for (const char c : word) {
    if (c == '(')
      out += "-LRB-";
    else if (c == ')')
      out += "-RRB-";
    else
      out += c;
  }
  return out;
}

void check_tree_words(std::string_view sentence, std::string_view tree, const Position& where) {
  std::string leaves;
  tree_leaves(tree, leaves);
  const std::vector<std::string_view> words = words_of_line(sentence), in_tree = words_of_line(leaves);
  for (std::size_t i = 0; i < std::min(words.size(), in_tree.size()); ++i)
    if (words[i] != in_tree[i] && word_in_tree(words[i]) != in_tree[i])
      throw Error(where, "word " + std::to_string(i + 1) + " of the tree is '" + std::string(in_tree[i]) + "', but '" +
                             std::string(words[i]) + "' in the sentence (both need the same words)");
  if (words.size() != in_tree.size())
    throw Error(where, "the tree has " + format_count(std::ssize(in_tree)) + " words, but the sentence has " +
                           format_count(std::ssize(words)) + " (both need the same words)");
}

std::string tree_of_linear(std::string_view linear, std::span<const std::string_view> words) {
  std::string out = "(TOP";
  std::vector<std::string_view> open;
  std::size_t used = 0;
  const auto refuse = [] { throw Error("internal: a linear tree does not fit its words"); };
  for (const std::string_view token : words_of_line(linear)) {
    switch (kind_of_linear_token(token)) {
      case LinearTreeToken::open:
        out.append(" ").append(token);
        open.push_back(token.substr(1));
        break;
      case LinearTreeToken::close:
        if (open.empty() || open.back() != token.substr(1)) refuse();
        open.pop_back();
        out += ")";
        break;
      case LinearTreeToken::word:
        if (used == words.size()) refuse();
        out.append(" (").append(token).append(" ").append(word_in_tree(words[used++])).append(")");
        break;
    }
  }
  if (!open.empty() || used != words.size()) refuse();
  return out + ")";
}

}  // namespace heed
