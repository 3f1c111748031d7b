#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/error.h"
#include "heed/text/strings/scan.h"

namespace heed {

/// The kinds of tokens in a linear tree, the form in which a model writes a constituency tree (Vinyals et al. 2015,
/// section 2.2): "(S (NP DT NN )NP (VP VBZ )VP )S". An opening bracket carries the label of its phrase, and so does the
/// closing bracket; a word is its part of speech alone, because the words are those of the source.
enum class LinearTreeToken { open, close, word };

inline LinearTreeToken kind_of_linear_token(std::string_view token) {
  if (token.starts_with('(')) return LinearTreeToken::open;
  return token.starts_with(')') ? LinearTreeToken::close : LinearTreeToken::word;
}

/// Replaces `out` by the linear tree of a tree in brackets, with single spaces between its tokens. Traces (-NONE-) are
/// left out with the phrases that hold nothing else, and so is the outermost bracket if its label is empty, TOP, ROOT
/// or S1. Function tags are cut off (NP-SBJ becomes NP) unless `function_tags` is true. If `spans` is given, replaces
/// it by the bytes of `line` from which each token comes: an opening bracket with its label, a closing bracket alone,
/// or a part of speech. A blank line gives no tokens. Throws LineError if `line` is no tree, or one without words.
void linearize_tree(std::string_view line, bool function_tags, std::string& out,
                    std::vector<ByteSpan>* spans = nullptr);

/// Replaces `out` by the words of a tree in brackets, with single spaces between them and without traces. If `spans` is
/// given, replaces it by the bytes of each word in `line`. A blank line gives no words. Throws LineError if `line` is
/// no tree, or one without words.
void tree_leaves(std::string_view line, std::string& out, std::vector<ByteSpan>* spans = nullptr);

/// Returns the words of a line, which stand between ASCII white space.
std::vector<std::string_view> words_of_line(std::string_view line);

/// Returns a word as a tree writes it: with -LRB- and -RRB- in place of round brackets.
std::string word_in_tree(std::string_view word);

/// Throws Error if the words of a sentence are not those of its tree in brackets. `where` is the place of the tree.
/// Throws LineError if `tree` is no tree.
void check_tree_words(std::string_view sentence, std::string_view tree, const Position& where);

/// Returns the tree in brackets, "(TOP (S ...))", of a linear tree and its words. Throws Error if the brackets do not
/// match, or if the linear tree has another number of words.
std::string tree_of_linear(std::string_view linear, std::span<const std::string_view> words);

}  // namespace heed
