#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/strings/string_ids.h"

namespace heed {

constexpr std::int32_t kPadId = 0, kUnknownId = 1, kStartId = 2, kEndId = 3;
constexpr std::int32_t kReservedIds = 4;

/// `<pad>`, `<unk>`, `<s>`, `</s>`: the pieces of the reserved ids.
std::string_view reserved_piece(std::int32_t id);

/// The pieces of a model in id order; the four reserved ones come first.
class Vocabulary {
 public:
  /// `pieces` with the reserved ones in front. Throws Error where they are not, or where a piece is empty, is there
  /// twice, or holds a space, a line end or a NUL; `where` is the file the message names.
  explicit Vocabulary(const std::vector<std::string>& pieces, const std::string& where = "vocabulary");

  std::int32_t size() const { return pieces_.size(); }
  std::vector<std::string> pieces() const;
  /// Of an id from 0 to size() - 1.
  std::string_view piece(std::int32_t id) const { return pieces_[id]; }

  /// The id of a piece of text, kUnknownId where there is none. Text that reads `<s>` is no reserved piece.
  std::int32_t id(std::string_view piece) const;
  bool contains(std::string_view piece) const { return id(piece) != kUnknownId; }

  /// Whether text can be a piece: not empty, not reserved, valid UTF-8, without space, line end and NUL.
  static bool is_piece(std::string_view text);

 private:
  StringIds pieces_;
};

}  // namespace heed
