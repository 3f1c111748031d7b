#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A set of pieces of a vocabulary. A checkpoint stores it as text: hexadecimal digits, each of which stands for four
/// pieces; the digit's lowest bit is the first of them.
class PieceSet {
 public:
  /// Creates an empty set for a vocabulary of `size` pieces.
  explicit PieceSet(std::int64_t size = 0) : members_(static_cast<std::size_t>(size)) {}
  /// Returns the set that text() has written for a vocabulary of `size` pieces. Throws Error if the text is none.
  static PieceSet parse(std::string_view text, std::int64_t size);

  void add(std::int32_t piece) { members_[static_cast<std::size_t>(piece)] = true; }
  bool contains(std::int32_t piece) const { return members_[static_cast<std::size_t>(piece)]; }
  std::string text() const;

 private:
  std::vector<bool> members_;
};

}  // namespace heed
