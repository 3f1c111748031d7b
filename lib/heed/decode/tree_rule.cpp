#include "heed/decode/tree_rule.h"

#include <algorithm>
#include <limits>
#include <string>

#include "heed/base/error.h"
#include "heed/text/trees/linear_tree.h"

namespace heed {

TreePieces::TreePieces(const Vocabulary& vocabulary)
    : kinds_(static_cast<std::size_t>(vocabulary.size()), Kind::other),
      closing_(static_cast<std::size_t>(vocabulary.size()), -1) {
  bool has_words = false;
  for (std::int32_t id = kReservedIds; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.piece(id);
    if (piece.starts_with("<unused")) continue;  // of build-vocab --pad-to-multiple
    Kind& kind = kinds_[static_cast<std::size_t>(id)];
    switch (kind_of_linear_token(piece)) {
      case LinearTreeToken::open: {
        // An opening bracket without its closing one could never be closed, and is not used.
        const std::int32_t closing = vocabulary.id(")" + std::string(piece.substr(1)));
        if (closing == kUnknownId) break;
        kind = Kind::open;
        closing_[static_cast<std::size_t>(id)] = closing;
        break;
      }
      case LinearTreeToken::close:
        kind = Kind::close;
        break;
      case LinearTreeToken::word:
        kind = Kind::word;
        has_words = true;
        break;
    }
  }
  if (!has_words) throw Error("the vocabulary of trees has no parts of speech (build-vocab --type trees makes one)");
}

void TreeRule::apply(int sentence, std::span<const std::int32_t> history, NextTokens& next) const {
  using Kind = TreePieces::Kind;
  const Shape& shape = shapes_[static_cast<std::size_t>(sentence)];
  std::vector<std::int32_t> open;
  int words = 0;
  for (const std::int32_t piece : history) {
    const Kind kind = pieces_.kind(piece);
    words += kind == Kind::word ? 1 : 0;
    if (kind == Kind::open) open.push_back(piece);
    if (kind == Kind::close) open.pop_back();
  }
  const bool is_empty = !history.empty() && pieces_.kind(history.back()) == Kind::open;
  const int missing = shape.words - words;
  // The pieces that the tree needs at least from here on: its words, and a closing bracket for each open one.
  const int needed = missing + static_cast<int>(open.size());
  const bool may_open = missing > 0 && static_cast<int>(history.size()) + needed + 2 <= shape.longest;
  const std::int32_t closing = open.empty() || is_empty ? -1 : pieces_.closing(open.back());
  for (std::int32_t piece = 0; piece < pieces_.size(); ++piece) {
    bool allowed = piece == kEndId && needed == 0;
    switch (pieces_.kind(piece)) {
      case Kind::open:
        allowed = may_open;
        break;
      case Kind::close:
        allowed = piece == closing;
        break;
      case Kind::word:
        allowed = missing > 0;
        break;
      case Kind::other:
        break;
    }
    if (!allowed) next.lower(piece, -std::numeric_limits<float>::infinity());
  }
}

}  // namespace heed
