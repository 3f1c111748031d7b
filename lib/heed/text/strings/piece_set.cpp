#include "heed/text/strings/piece_set.h"

#include "heed/base/error.h"

namespace heed {

constexpr std::string_view kDigits = "0123456789abcdef";

PieceSet PieceSet::parse(std::string_view text, std::int64_t size) {
  PieceSet out(size);
  const std::size_t pieces = out.members_.size();
  if (text.size() != (pieces + 3) / 4)
    throw Error("a set of pieces has " + std::to_string(text.size()) + " digits, but the vocabulary has " +
                std::to_string(size) + " pieces");
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) throw Error("a set of pieces is not written in hexadecimal digits");
    for (std::size_t bit = 0; bit < 4; ++bit) {
      if ((digit >> bit & 1) == 0) continue;
      if (4 * i + bit >= pieces) throw Error("a set of pieces has a piece that is not in the vocabulary");
      out.members_[4 * i + bit] = true;
    }
  }
  return out;
}

std::string PieceSet::text() const {
  std::string out;
  for (std::size_t first = 0; first < members_.size(); first += 4) {
    std::size_t digit = 0;
    for (std::size_t bit = 0; bit < 4 && first + bit < members_.size(); ++bit)
      digit |= static_cast<std::size_t>(members_[first + bit]) << bit;
    out += kDigits[digit];
  }
  return out;
}

}  // namespace heed
