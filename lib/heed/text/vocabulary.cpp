#include "heed/text/vocabulary.h"

#include <array>

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

Vocabulary::Vocabulary(std::vector<std::string> pieces, const std::string& where) : pieces_(std::move(pieces)) {
  const auto fail = [&](std::size_t id, const std::string& what) {
    throw Error(Position{where}, "piece " + std::to_string(id) + ": " + what + " (make it again with build-vocab)");
  };
  for (std::size_t id = 0; id < kReserved.size(); ++id)
    if (id >= pieces_.size() || pieces_[id] != kReserved[id])
      fail(id, "is not the reserved " + std::string(kReserved[id]));
  ids_.reserve(pieces_.size());
  for (std::size_t id = kReserved.size(); id < pieces_.size(); ++id) {
    const std::string& piece = pieces_[id];
    if (!is_piece(piece)) fail(id, "'" + piece + "' cannot be a piece");
    if (!ids_.emplace(piece, static_cast<std::int32_t>(id)).second) fail(id, "'" + piece + "' is there twice");
  }
}

std::int32_t Vocabulary::id(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? kUnknownId : found->second;
}

}  // namespace heed
