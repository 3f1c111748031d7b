#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/text/strings/string_ids.h"
#include "heed/text/unigram/piece_trie.h"
#include "heed/text/unigram/sentencepiece_model.h"
#include "heed/text/unigram/unigram.h"

namespace heed {

/// SentencePiece's byte-pair encoding: of all neighbours that make a piece together those with the highest score are
/// merged, the leftmost first; user-defined pieces are never merged, unused ones come apart again. Immutable; serves
/// any number of threads.
class SentencePieceBpe {
 public:
  explicit SentencePieceBpe(const SentencePieceModel& model);

  /// Replaces `spans` by the pieces of a normalised text.
  void segment(std::string_view text, std::vector<PieceSpan>& spans) const;

 private:
  struct Piece {
    std::int32_t number = kNoId;  // in the model
    std::int32_t order = 0;       // the higher the earlier it is merged
    bool unused = false;
  };
  struct Symbol;
  struct Unmerged;

  const Piece* find(std::string_view text) const;
  void take_apart(std::string_view text, std::size_t end, const std::vector<Unmerged>& unmerged, int depth,
                  std::vector<PieceSpan>& spans) const;

  StringIds texts_;
  std::vector<Piece> pieces_;
  PieceTrie user_defined_;
  std::int32_t unknown_ = -1;
};

}  // namespace heed
