#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/strings/string_ids.h"

namespace heed {

// The ids of the four reserved pieces `<pad>`, `<unk>`, `<s>` and `</s>`, which are in every vocabulary.
constexpr std::int32_t kPadId = 0, kUnknownId = 1, kStartId = 2, kEndId = 3;
constexpr std::int32_t kReservedIds = 4;

/// Returns the reserved piece with the id `id`, which is below kReservedIds: `<pad>`, `<unk>`, `<s>` or `</s>`.
std::string_view reserved_piece(std::int32_t id);

/// The pieces (words or parts of words) that a model reads and writes, with their ids 0, 1, 2, ... The ids 0
/// to 3 belong to the four reserved pieces `<pad>`, `<unk>`, `<s>` and `</s>`.
class Vocabulary {
 public:
  /// Makes a vocabulary of `pieces`, which begin with the four reserved pieces. Throws Error if the list does not begin
  /// with the reserved pieces, if a piece occurs twice, or if is_piece() returns false for a piece that is not
  /// reserved. The error message uses `where` as the name of the vocabulary's file.
  explicit Vocabulary(const std::vector<std::string>& pieces, const std::string& where = "vocabulary");

  std::int32_t size() const { return pieces_.size(); }
  /// Returns all pieces in the order of their ids.
  std::vector<std::string> pieces() const;
  /// Returns the piece with the id `id`, which is from 0 to size() - 1.
  std::string_view piece(std::int32_t id) const { return pieces_[id]; }

  /// Returns the id of a piece of text, or kUnknownId if the vocabulary does not contain the piece. A text such as
  /// `<s>`, which looks like a reserved piece, gives kUnknownId too.
  std::int32_t id(std::string_view piece) const;
  bool contains(std::string_view piece) const { return id(piece) != kUnknownId; }

  /// Returns whether a text can be a piece: the text is not empty, not reserved, valid UTF-8, and contains no space, no
  /// line end and no NUL.
  static bool is_piece(std::string_view text);

 private:
  StringIds pieces_;
};

}  // namespace heed
