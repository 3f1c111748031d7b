#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/text/strings/string_ids.h"
#include "heed/text/unigram/piece_trie.h"
#include "heed/text/unigram/sentencepiece_model.h"
#include "heed/text/unigram/unigram.h"

namespace heed {

/// Cuts text into pieces with a SentencePiece model of the type bpe. The text starts as single characters. Of all
/// neighbours whose texts together are a piece, those whose piece has the highest score are merged (the leftmost ones
/// if several have it), until no neighbours make a piece. User-defined pieces are never merged. A piece of the kind
/// `unused` may be merged further, but if it is left at the end, it is taken apart into the two parts it was merged
/// from. Immutable; any number of threads may use one object.
class SentencePieceBpe {
 public:
  explicit SentencePieceBpe(const SentencePieceModel& model);

  /// Replaces `spans` by the pieces of `text`, which is normalised.
  void segment(std::string_view text, std::vector<PieceSpan>& spans) const;

 private:
  /// A piece that merges can make. A piece with `unused` = true may be made on the way, but is taken apart at the end.
  struct Piece {
    std::int32_t number = kNoId;  // index in SentencePieceModel::pieces
    std::int32_t order = 0;       // pieces with a higher `order` are merged first
    bool unused = false;
  };
  struct Symbol;
  struct Unmerged;

  /// The piece whose text is `text`; nullptr if no piece has this text.
  const Piece* find(std::string_view text) const;
  void take_apart(std::string_view text, std::size_t end, const std::vector<Unmerged>& unmerged, int depth,
                  std::vector<PieceSpan>& spans) const;

  StringIds texts_;
  std::vector<Piece> pieces_;
  PieceTrie user_defined_;
  std::int32_t unknown_ = -1;
};

}  // namespace heed
