#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The character U+2581, which stands for a space in SentencePiece's pieces.
constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

/// Returns the text of the piece that stands for the byte `byte`: `<0x00>` to `<0xFF>`. A model with byte_fallback cuts
/// unknown characters into such pieces.
std::string byte_piece(unsigned char byte);
/// Returns the byte for which a piece such as `<0x41>` stands, or -1 if `piece` does not stand for a byte.
int byte_of_piece(std::string_view piece);

/// The rules by which text is normalised, before the text is cut into pieces or after pieces are joined to text. In a
/// `.model` file, the message NormalizerSpec of sentencepiece_model.proto holds these rules.
struct SentencePieceRules {
  /// The strings to replace and their replacements, in SentencePiece's binary form; empty if no string is replaced.
  std::string precompiled_charsmap;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

/// The contents of a SentencePiece `.model` file that encoding and decoding need. The names of types and members are
/// those of sentencepiece_model.proto. A unigram model that heed has learnt is also stored in this structure, with the
/// default rules of the normaliser.
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
  std::string unk_surface = " \xE2\x81\x87 ";  ///< the text that decoding writes for the unknown piece
  std::string source;  ///< the bytes of the file that parse() read; empty for a model that heed has learnt

  /// Returns whether a file whose first byte is `byte` may be a `.model` file. A vocabulary file of heed never starts
  /// with this byte.
  static constexpr bool may_start_with(int byte) { return byte == 0x0A; }

  /// Reads the bytes of a `.model` file, which may come from an untrusted source. Throws Error with the file name
  /// `where` if the bytes are not a SentencePiece model, are cut short, or have an unknown model type. parse() does not
  /// check the pieces of the model; validate() does.
  static SentencePieceModel parse(std::string_view bytes, const std::string& where);

  /// Checks the pieces of the model. Throws Error with the file name `where` unless all scores are finite, at most one
  /// piece is the unknown piece, no piece occurs twice, and the model has all 256 byte pieces or none.
  void validate(const std::string& where) const;
};

}  // namespace heed
