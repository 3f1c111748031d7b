#include "heed/text/strings/vocabulary.h"

#include <array>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/utf8.h"

namespace heed {
namespace {

constexpr std::array<std::string_view, kReservedIds> kReserved = {"<pad>", "<unk>", "<s>", "</s>"};

}  // namespace

std::string_view reserved_piece(std::int32_t id) {
  return kReserved.at(static_cast<std::size_t>(id));
}

bool Vocabulary::is_piece(std::string_view text) {
  if (text.empty() || text.find_first_of(std::string_view(" \n\0", 3)) != std::string_view::npos) return false;
  for (const auto reserved : kReserved)
    if (text == reserved) return false;
  return find_invalid_utf8(text) == std::string_view::npos;
}

Vocabulary::Vocabulary(const std::vector<std::string>& pieces, const std::string& where) {
  const auto fail = [&](std::size_t id, const std::string& what) {
    throw Error(Position{where}, "piece " + std::to_string(id) + ": " + what + " (make it again with build-vocab)");
  };
  for (std::size_t id = 0; id < kReserved.size(); ++id) {
    if (id >= pieces.size() || pieces[id] != kReserved[id])
      fail(id, "is not the reserved " + std::string(kReserved[id]));
    pieces_.add(pieces[id]);
  }
  for (std::size_t id = kReserved.size(); id < pieces.size(); ++id) {
    if (!is_piece(pieces[id])) fail(id, "'" + pieces[id] + "' cannot be a piece");
    if (std::cmp_not_equal(pieces_.add(pieces[id]), id)) fail(id, "'" + pieces[id] + "' is there twice");
  }
}

std::vector<std::string> Vocabulary::pieces() const {
  std::vector<std::string> pieces;
  for (std::int32_t id = 0; id < size(); ++id) pieces.emplace_back(piece(id));
  return pieces;
}

std::int32_t Vocabulary::id(std::string_view piece) const {
  const std::int32_t found = pieces_.find(piece);
  return found < kReservedIds ? kUnknownId : found;
}

}  // namespace heed
