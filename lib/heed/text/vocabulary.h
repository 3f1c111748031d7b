#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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
  explicit Vocabulary(std::vector<std::string> pieces, const std::string& where = "vocabulary");
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  std::int32_t size() const { return static_cast<std::int32_t>(pieces_.size()); }
  const std::vector<std::string>& pieces() const { return pieces_; }
  const std::string& piece(std::int32_t id) const { return pieces_.at(static_cast<std::size_t>(id)); }

  /// The id of a piece of text, kUnknownId where there is none. Text that reads `<s>` is no reserved piece.
  std::int32_t id(std::string_view piece) const;
  bool contains(std::string_view piece) const { return id(piece) != kUnknownId; }

  /// Whether text can be a piece: not empty, not reserved, valid UTF-8, without space, line end and NUL.
  static bool is_piece(std::string_view text);

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  // views into pieces_; without the reserved ones
};

}  // namespace heed
