#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/text/strings/string_ids.h"
#include "heed/text/unigram/piece_trie.h"
#include "heed/text/unigram/sentencepiece_model.h"
#include "heed/text/unigram/unigram.h"

namespace heed {

/// Cuts text into pieces with a SentencePiece model of the type bpe. The text starts as single characters. Again and
/// again, two neighbouring parts whose joined text is a piece are merged: always the pair that makes the piece with the
/// highest score, and the leftmost pair among equal ones, until no two neighbours make a piece. User-defined pieces are
/// never merged. A piece of the kind `unused` may be merged further, but if it is left at the end, it is split into the
/// two parts from which it was merged. Immutable; any number of threads may use one object.
class SentencePieceBpe {
 public:
  explicit SentencePieceBpe(const SentencePieceModel& model);

  /// Cuts the normalised text `text` into pieces and replaces `spans` by these pieces.
  void segment(std::string_view text, std::vector<PieceSpan>& spans) const;

 private:
  /// A piece that can result from a merge. A piece with `unused` = true may be a step towards a longer piece, but is
  /// split again if it is left at the end.
  struct Piece {
    std::int32_t number = kNoId;  // the piece's index in SentencePieceModel::pieces
    std::int32_t order = 0;       // the rank of the score: a merge to a piece with a higher `order` is done first
    bool unused = false;
  };
  struct Symbol;
  struct Unmerged;

  /// Returns the piece whose text is `text`; nullptr if the model has no normal or unused piece with this text.
  const Piece* find(std::string_view text) const;
  void take_apart(std::string_view text, std::size_t end, const std::vector<Unmerged>& unmerged, int depth,
                  std::vector<PieceSpan>& spans) const;

  StringIds texts_;
  std::vector<Piece> pieces_;
  PieceTrie user_defined_;
  std::int32_t unknown_ = -1;
};

}  // namespace heed
