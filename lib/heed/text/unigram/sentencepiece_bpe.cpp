#include "heed/text/unigram/sentencepiece_bpe.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "heed/base/utf8.h"

namespace heed {
namespace {

using Kind = SentencePieceModel::Kind;

// How many unused pieces may lie within one another before take_apart() stops splitting them; the limit is the same as
// in SentencePiece.
constexpr int kDeepestUnused = 100;

/// Returns an integer for the score `score` of a piece, such that a higher score gives a higher integer (for finite
/// scores).
std::int32_t order_of(float score) {
  const auto bits = std::bit_cast<std::int32_t>(score);
  return bits < 0 ? bits ^ 0x7FFFFFFF : bits;
}

}  // namespace

/// A node of the linked list of the pieces into which the text is cut so far: the piece is `size` bytes of the text
/// from offset `begin` on, and `previous` and `next` are the indices of the neighbouring nodes. A node that was merged
/// into its left neighbour has size 0. A frozen node is a user-defined piece, which is never merged.
struct SentencePieceBpe::Symbol {
  std::size_t begin, size;
  std::int32_t previous, next;
  bool frozen;
};

/// A merge whose result is a piece of the kind `unused`: this piece, and the size in bytes of the left of the two
/// pieces that were merged.
struct SentencePieceBpe::Unmerged {
  const Piece* piece;
  std::size_t first;
};

SentencePieceBpe::SentencePieceBpe(const SentencePieceModel& model) {
  std::vector<std::pair<std::string_view, std::int32_t>> user_defined;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const auto& piece = model.pieces[i];
    const auto number = static_cast<std::int32_t>(i);
    if (piece.kind == Kind::unknown) unknown_ = number;
    if (piece.kind == Kind::user_defined) user_defined.emplace_back(piece.text, number);
    if (piece.kind != Kind::user_defined && piece.kind != Kind::normal && piece.kind != Kind::unused) continue;
    texts_.add(piece.text);
    pieces_.push_back({number, order_of(piece.score), piece.kind == Kind::unused});
  }
  user_defined_ = PieceTrie(std::move(user_defined));
}

const SentencePieceBpe::Piece* SentencePieceBpe::find(std::string_view text) const {
  const std::int32_t found = texts_.find(text);
  return found == kNoId ? nullptr : &pieces_[static_cast<std::size_t>(found)];
}

/// Appends one part of a segmented text to `spans`: the part is `text`, and it ends at byte `end` of the whole text. If
/// `text` is an unused piece, appends instead the two parts from which the piece was merged, which may be unused pieces
/// again. `depth` is the number of unused pieces that contain `text`.
void SentencePieceBpe::take_apart(std::string_view text, std::size_t end, const std::vector<Unmerged>& unmerged,
                                  int depth, std::vector<PieceSpan>& spans) const {
  const Piece* piece = find(text);
  const auto take = [&](std::int32_t number) { spans.push_back({number, static_cast<std::uint32_t>(end)}); };
  if (!piece) return take(unknown_);
  if (!piece->unused || depth > kDeepestUnused) return take(piece->number);
  const auto last =
      std::find_if(unmerged.rbegin(), unmerged.rend(), [&](const Unmerged& u) { return u.piece == piece; });
  if (last == unmerged.rend()) return take(unknown_);
  take_apart(text.substr(0, last->first), end - (text.size() - last->first), unmerged, depth + 1, spans);
  take_apart(text.substr(last->first), end, unmerged, depth + 1, spans);
}

void SentencePieceBpe::segment(std::string_view text, std::vector<PieceSpan>& spans) const {
  struct Merge {
    std::int32_t order, left, right;
    std::size_t size;
    bool operator<(const Merge& other) const { return order != other.order ? order < other.order : left > other.left; }
  };
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t bytes = 0;
    user_defined_.prefixes(text.substr(at), [&](std::size_t longer, std::int32_t) {
      bytes = longer;
      return true;
    });
    const bool frozen = bytes > 0;
    if (!frozen) {
      std::size_t end = at;
      decode_utf8(text, end);
      bytes = end - at;
    }
    const auto index = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({at, bytes, index - 1, index + 1, frozen});
    at += bytes;
  }
  spans.clear();
  if (symbols.empty()) return;
  symbols.back().next = -1;
  const auto symbol = [&](std::int32_t index) -> Symbol& { return symbols[static_cast<std::size_t>(index)]; };

  std::vector<Unmerged> unmerged;
  std::priority_queue<Merge> merges;
  const auto offer = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0 || symbol(left).frozen || symbol(right).frozen) return;
    const std::size_t size = symbol(left).size + symbol(right).size;
    const Piece* piece = find(text.substr(symbol(left).begin, size));
    if (!piece) return;
    merges.push({piece->order, left, right, size});
    if (piece->unused) unmerged.push_back({piece, symbol(left).size});
  };
  for (std::size_t i = 1; i < symbols.size(); ++i)
    offer(static_cast<std::int32_t>(i - 1), static_cast<std::int32_t>(i));
  while (!merges.empty()) {
    const Merge merge = merges.top();
    merges.pop();
    Symbol& left = symbol(merge.left);
    Symbol& right = symbol(merge.right);
    // Skips a merge that is out of date: since the merge was queued, one of its two nodes has been merged with another
    // node.
    if (left.size == 0 || right.size == 0 || left.size + right.size != merge.size) continue;
    left.size = merge.size;
    left.next = right.next;
    if (right.next >= 0) symbol(right.next).previous = merge.left;
    right.size = 0;
    offer(left.previous, merge.left);
    offer(merge.left, left.next);
  }
  for (std::int32_t i = 0; i >= 0; i = symbol(i).next)
    take_apart(text.substr(symbol(i).begin, symbol(i).size), symbol(i).begin + symbol(i).size, unmerged, 0, spans);
}

}  // namespace heed
