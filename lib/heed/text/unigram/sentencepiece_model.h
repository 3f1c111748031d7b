#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// U+2581, which stands for a space in SentencePiece's pieces.
constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

/// The piece that stands for a byte where a model falls back to bytes: `<0x00>` to `<0xFF>`.
std::string byte_piece(unsigned char byte);
/// The byte of such a piece, or -1.
int byte_of_piece(std::string_view piece);

/// How text is normalised before it is cut (or, the other way, after it is put together): NormalizerSpec.
struct SentencePieceRules {
  std::string precompiled_charsmap;  ///< empty: no character is changed
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

/// What a SentencePiece `.model` file holds, as far as encoding and decoding need it; the names are those of its
/// sentencepiece_model.proto. heed's own unigram models are such models too, with the normaliser's defaults.
struct SentencePieceModel {
  enum class Type : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };
  enum class Kind : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::normal;
  };

  Type type = Type::unigram;
  std::vector<Piece> pieces;
  SentencePieceRules normalizer;
  std::optional<SentencePieceRules> denormalizer;
  bool byte_fallback = false, treat_whitespace_as_suffix = false;
  std::string bos_piece = "<s>", eos_piece = "</s>";
  std::string unk_surface = " \xE2\x81\x87 ";  ///< what the unknown piece is decoded to
  std::string source;                          ///< the file, as parse() was given it; empty for heed's own models

  /// Whether a file that starts with this byte may be a `.model` (a vocabulary file of heed never starts so).
  static constexpr bool may_start_with(int byte) { return byte == 0x0A; }

  /// Reads the bytes of a `.model` file, which may come from anywhere. Throws Error that names `where` for what is no
  /// model, is cut short, or has an unknown type; the pieces are for validate() to check.
  static SentencePieceModel parse(std::string_view bytes, const std::string& where);

  /// Throws Error that names `where` unless the pieces make a model: finite scores, one unknown piece at most, no piece
  /// twice, all bytes or none.
  void validate(const std::string& where) const;
};

}  // namespace heed
