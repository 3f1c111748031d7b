#include "heed/text/unigram/sentencepiece_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "heed/base/error.h"
#include "heed/base/utf8.h"
#include "heed/text/strings/string_ids.h"

namespace heed {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";
// A piece must be shorter than this many bytes, as in SentencePiece.
constexpr std::size_t kLongestPieceBytes = 8000;

/// Reads the fields of a protocol-buffer message, one field after the other. The encoding is described at
/// https://protobuf.dev/programming-guides/encoding.
class Message {
 public:
  enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  Message(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  /// Reads the next field of the message; returns false at the end of the message.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    field_ = tag >> 3;
    wire_ = static_cast<Wire>(tag & 7);
    switch (wire_) {
      case Wire::varint:
        number_ = varint();
        break;
      case Wire::fixed64:
        take(8);
        break;
      case Wire::bytes:
        bytes_ = take(varint());
        break;
      case Wire::fixed32:
        bytes_ = take(4);
        break;
      default:
        fail();
    }
    if (field_ == 0) fail();
    return true;
  }

  /// Returns whether the current field of the message has the field number `field` and the wire type `wire`.
  bool is(std::uint64_t field, Wire wire) const { return field_ == field && wire_ == wire; }
  /// Returns the value of the message's current field, which must have the wire type varint.
  std::uint64_t number() const { return number_; }
  /// Returns the bytes of the message's current field, which must have the wire type bytes or fixed32.
  std::string_view bytes() const { return bytes_; }
  /// Returns the float that the message's current field holds; the field must have the wire type fixed32.
  float real() const {
    std::uint32_t bits = 0;
    for (std::size_t i = 4; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(bytes_[i]);
    return std::bit_cast<float>(bits);
  }
  /// Returns the inner message that the current field holds; the field must have the wire type bytes.
  Message message() const { return {bytes_, where_}; }

 private:
  [[noreturn]] void fail() const {
    throw Error(Position{where_},
                "is no SentencePiece model, or a damaged one (download it or train it again; vocabularies of heed "
                "are made by build-vocab)");
  }

  /// Removes the first `count` bytes of the unread part of the message and returns them. Throws Error if fewer bytes
  /// are left.
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  /// Reads an integer of variable length from the message: each byte holds seven bits, the lowest bits first.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  std::string_view rest_;
  const std::string& where_;
  std::uint64_t field_ = 0, number_ = 0;
  Wire wire_ = Wire::varint;
  std::string_view bytes_;
};

using Wire = Message::Wire;

SentencePieceModel::Piece read_piece(Message message) {
  SentencePieceModel::Piece piece;
  while (message.next()) {
    if (message.is(1, Wire::bytes)) piece.text = message.bytes();
    if (message.is(2, Wire::fixed32)) piece.score = message.real();
    if (message.is(3, Wire::varint) && message.number() >= 1 && message.number() <= 6)
      piece.kind = static_cast<SentencePieceModel::Kind>(message.number());
  }
  return piece;
}

void read_trainer(Message message, SentencePieceModel& model, std::uint64_t& type) {
  while (message.next()) {
    if (message.is(3, Wire::varint)) type = message.number();
    if (message.is(24, Wire::varint)) model.treat_whitespace_as_suffix = message.number() != 0;
    if (message.is(35, Wire::varint)) model.byte_fallback = message.number() != 0;
    if (message.is(44, Wire::bytes)) model.unk_surface = message.bytes();
    if (message.is(46, Wire::bytes)) model.bos_piece = message.bytes();
    if (message.is(47, Wire::bytes)) model.eos_piece = message.bytes();
  }
}

void read_normalizer(Message message, SentencePieceRules& normalizer) {
  while (message.next()) {
    if (message.is(2, Wire::bytes)) normalizer.precompiled_charsmap = message.bytes();
    if (message.is(3, Wire::varint)) normalizer.add_dummy_prefix = message.number() != 0;
    if (message.is(4, Wire::varint)) normalizer.remove_extra_whitespaces = message.number() != 0;
    if (message.is(5, Wire::varint)) normalizer.escape_whitespaces = message.number() != 0;
  }
}

}  // namespace

std::string byte_piece(unsigned char byte) {
  return {'<', '0', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15], '>'};
}

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const auto high = kHexDigits.find(piece[3]), low = kHexDigits.find(piece[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(high << 4 | low);
}

SentencePieceModel SentencePieceModel::parse(std::string_view bytes, const std::string& where) {
  SentencePieceModel model;
  std::uint64_t type = 1;
  Message message(bytes, where);
  while (message.next()) {
    if (message.is(1, Wire::bytes)) model.pieces.push_back(read_piece(message.message()));
    if (message.is(2, Wire::bytes)) read_trainer(message.message(), model, type);
    if (message.is(3, Wire::bytes)) read_normalizer(message.message(), model.normalizer);
    if (message.is(5, Wire::bytes)) {
      if (!model.denormalizer) model.denormalizer.emplace();
      read_normalizer(message.message(), *model.denormalizer);
    }
  }
  if (type < 1 || type > 4)
    throw Error(Position{where}, "is a SentencePiece model of the unknown type number " + std::to_string(type) +
                                     " (heed reads unigram, bpe, word and char)");
  model.type = static_cast<Type>(type);
  model.source = bytes;
  return model;
}

void SentencePieceModel::validate(const std::string& where) const {
  if (pieces.empty()) throw Error(Position{where}, "is no SentencePiece model: it has no pieces");
  StringIds seen, reserved;
  std::array<bool, 256> bytes{};
  std::size_t unknown = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const auto fail = [&](const std::string& what) {
      throw Error(Position{where}, "piece " + std::to_string(i) + " '" + piece.text.substr(0, 60) + "' " + what +
                                       " (a damaged SentencePiece model? download it or train it again)");
    };
    if (piece.text.empty()) fail("is empty");
    if (piece.text.size() >= kLongestPieceBytes) fail("is too long");
    if (!std::isfinite(piece.score)) fail("has no finite score");
    if (find_invalid_utf8(piece.text) != std::string_view::npos) fail("is not UTF-8");
    const bool text = piece.kind == SentencePieceModel::Kind::normal ||
                      piece.kind == SentencePieceModel::Kind::user_defined ||
                      piece.kind == SentencePieceModel::Kind::unused;
    StringIds& mine = text ? seen : reserved;
    const std::int32_t before = mine.size();
    if (mine.add(piece.text) != before) fail("is there twice");
    if (text && piece.text.find('\0') != std::string::npos && piece.text.size() > 1) fail("holds a NUL");
    if (text && !normalizer.escape_whitespaces && piece.text.find(' ') != std::string::npos)
      throw Error(Position{where}, "piece " + std::to_string(i) + " '" + piece.text +
                                       "' holds a space, which heed cannot write as a part of a piece");
    unknown += piece.kind == SentencePieceModel::Kind::unknown;
    if (piece.kind != SentencePieceModel::Kind::byte) continue;
    const int byte = byte_of_piece(piece.text);
    if (byte < 0) fail("is no byte");
    if (!byte_fallback) fail("is a byte, but the model does not fall back to bytes");
    bytes[static_cast<std::size_t>(byte)] = true;
  }
  const auto fail = [&](const char* what) {
    throw Error(Position{where}, std::string(what) + " (a damaged SentencePiece model? download it or train it again)");
  };
  if (unk_surface.find('\n') != std::string::npos) fail("writes a line end for what is unknown");
  if (unknown > 1) fail("has several unknown pieces");
  if (unknown == 0 && !byte_fallback) fail("has no unknown piece");
  if (byte_fallback && std::find(bytes.begin(), bytes.end(), false) != bytes.end())
    fail("falls back to bytes, but lacks some of them");
}

}  // namespace heed
