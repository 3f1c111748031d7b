#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/text/unigram/sentencepiece.h"

namespace heed {

struct PieceWithId {
  std::string piece;
  std::int32_t id;
};

/// SentencePiece's extra options (SetEncodeExtraOptions, SetDecodeExtraOptions): changes of the list of pieces that a
/// line is encoded to or decoded from, made one after the other in the order in which they are named. `reverse` turns
/// the list round, `bos` puts the model's start piece in front, `eos` puts its end piece behind, and `unk` replaces the
/// text of unknown pieces by the model's unknown piece.
class ExtraOptions {
 public:
  ExtraOptions() = default;
  /// Reads a list such as "reverse:bos:eos"; `pieces` must outlive this object. Throws UsageError for an unknown name,
  /// and Error that names `where`, the model's file, where the model lacks the piece that an option needs.
  ExtraOptions(const std::string& list, const SentencePiece& pieces, const std::string& where);

  bool empty() const { return steps_.empty(); }
  void apply(std::vector<PieceWithId>& list) const;

 private:
  enum class Step : std::uint8_t { reverse, bos, eos, unk };

  std::vector<Step> steps_;
  const SentencePiece* pieces_ = nullptr;
};

}  // namespace heed
