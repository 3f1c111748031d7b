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

/// Implements SentencePiece's extra options (SetEncodeExtraOptions, SetDecodeExtraOptions). Each option changes the
/// list of pieces that encoding has produced or that will be decoded; the options apply in the order in which the user
/// names them. `reverse` reverses the list, `bos` adds the model's start piece at the beginning, `eos` adds the model's
/// end piece at the end, and `unk` replaces the text of unknown pieces by the model's unknown piece.
class ExtraOptions {
 public:
  ExtraOptions() = default;
  /// Parses a list such as "reverse:bos:eos". `pieces` must outlive this object. Throws UsageError for an unknown name.
  /// Throws Error naming `where`, the model's file, when the model lacks the piece that an option needs.
  ExtraOptions(const std::string& list, const SentencePiece& pieces, const std::string& where);

  bool empty() const { return steps_.empty(); }
  void apply(std::vector<PieceWithId>& list) const;

 private:
  enum class Step : std::uint8_t { reverse, bos, eos, unk };

  std::vector<Step> steps_;
  const SentencePiece* pieces_ = nullptr;
};

}  // namespace heed
