#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/config/fields.h"
#include "heed/text/strings/scan.h"
#include "heed/text/unigram/sentencepiece.h"

namespace heed {

class BpeEncoder;
struct SubwordSampler;

/// How a token is cut into pieces. A piece is a string of the vocabulary.
/// - words: the token is one piece.
/// - bpe: byte-pair encoding merges characters to pieces; every piece but the last one of a token ends with a
/// separator, such as "@@".
/// - unigram: a unigram language model cuts the token; the first piece of each token starts with U+2581.
/// - characters: each character is a piece, and the piece `<space>` stands between tokens.
/// - sentencepiece: a `.model` file of SentencePiece cuts the whole line. build-vocab cannot learn this type.
enum class SubwordType { words, bpe, unigram, characters, sentencepiece };

template <>
struct EnumNames<SubwordType> {
  static constexpr std::pair<SubwordType, std::string_view> values[] = {{SubwordType::words, "words"},
                                                                        {SubwordType::bpe, "bpe"},
                                                                        {SubwordType::unigram, "unigram"},
                                                                        {SubwordType::characters, "char"}};
};

/// The piece that stands between two words in a character model. `<space>` is longer than one character, so that no
/// character of a text can be mistaken for it.
constexpr std::string_view kSpacePiece = "<space>";

/// The type name that vocabulary files and checkpoints store for a SentencePiece model.
constexpr std::string_view kSentencePieceType = "sentencepiece";

/// Cuts tokens into pieces (the strings of the vocabulary) and joins pieces to tokens. Subwords works between
/// TextPipeline, which makes the tokens, and Vocabulary, which turns pieces into ids. Immutable; any number of threads
/// may use one object.
class Subwords {
 public:
  /// Makes a subword model of the type `words` or `characters`; these two types need no data.
  explicit Subwords(SubwordType type = SubwordType::words) : type_(type) {}
  explicit Subwords(std::shared_ptr<const BpeEncoder> bpe) : type_(SubwordType::bpe), bpe_(std::move(bpe)) {}
  /// Makes a subword model of the type `sentencepiece` if `pieces` was read from a `.model` file, and of the type
  /// `unigram` if heed has learnt `pieces`.
  explicit Subwords(std::shared_ptr<const SentencePiece> pieces)
      : type_(pieces->model().source.empty() ? SubwordType::unigram : SubwordType::sentencepiece),
        sentencepiece_(std::move(pieces)) {}

  SubwordType type() const { return type_; }
  /// Returns the name of the subword model's type, as vocabulary files and checkpoints store it.
  std::string_view type_name() const {
    return type_ == SubwordType::sentencepiece ? kSentencePieceType : enum_name(type_);
  }
  const BpeEncoder* bpe() const { return bpe_.get(); }
  /// Returns the SentencePiece encoder of a subword model of the type `unigram` or `sentencepiece`; nullptr for the
  /// other types.
  const SentencePiece* sentencepiece() const { return sentencepiece_.get(); }

  /// Returns whether pieces have probabilities, so that there are n best segmentations, and others can be drawn.
  bool is_unigram() const { return sentencepiece_ && sentencepiece_->unigram(); }

  /// Calls `take(piece, word)` for every piece of `tokens` (a line of tokens separated by spaces), where `word` is the
  /// index of the token that contains the piece. The piece `<space>` counts as part of the token before it. The string
  /// view `piece` is valid until `take` returns. With a `sampler`, the segmentation is drawn at random (subword
  /// regularisation).
  template <class Take>
  void split(std::string_view tokens, Take&& take, SubwordSampler* sampler = nullptr) const {
    if (sentencepiece_)
      return sentencepiece_->encode(
          tokens, [&](std::string_view piece, std::int32_t, int word) { take(piece, word); }, sampler);
    split_spans(
        tokens, [&](std::string_view piece, int word, ByteSpan) { take(piece, word); }, sampler);
  }
  /// Calls `take(piece, word, span)` for every piece of `tokens`: like split(), with one argument more. `span` is the
  /// range of bytes of `tokens` that the piece stands for.
  template <class Take>
  void split_spans(std::string_view tokens, Take&& take, SubwordSampler* sampler = nullptr) const;
  std::vector<std::string> split(std::string_view tokens) const;
  /// Cuts the line of tokens `tokens` into pieces and appends the pieces to `out`, separated by spaces.
  void append_pieces(std::string_view tokens, std::string& out, SubwordSampler* sampler = nullptr) const;

  /// Joins `pieces` to tokens and returns the tokens, separated by spaces: the reverse of split().
  std::string join(const std::vector<std::string_view>& pieces) const;
  /// Returns, for each piece, the index of the token that contains the piece.
  std::vector<int> words_of(const std::vector<std::string_view>& pieces) const;

 private:
  /// Replaces `ends` by the byte offsets within `token` at which the token's pieces end (for the types `bpe` and
  /// `characters` only).
  void cut(std::string_view token, std::vector<std::size_t>& ends, SubwordSampler* sampler) const;
  /// Returns the text that byte-pair encoding writes at the end of a piece which is not the last one of its token ("@@"
  /// by default); empty for all types but `bpe`.
  std::string_view separator() const;

  SubwordType type_;
  std::shared_ptr<const BpeEncoder> bpe_;
  std::shared_ptr<const SentencePiece> sentencepiece_;
};

template <class Take>
void Subwords::split_spans(std::string_view tokens, Take&& take, SubwordSampler* sampler) const {
  if (sentencepiece_) {
    const auto take_span = [&](std::string_view piece, std::int32_t, int word, ByteSpan span) {
      take(piece, word, span);
    };
    return sentencepiece_->encode_spans(tokens, take_span, sampler);
  }
  std::vector<std::size_t> ends;
  std::string piece;
  int word = 0;
  for (std::size_t at = tokens.find_first_not_of(' '); at != std::string_view::npos;
       at = tokens.find_first_not_of(' ', at), ++word) {
    const std::size_t first = at, end = std::min(tokens.find(' ', at), tokens.size());
    const std::string_view token = tokens.substr(at, end - at);
    at = end;
    if (word > 0 && type_ == SubwordType::characters) take(kSpacePiece, word - 1, ByteSpan{first - 1, first});
    if (type_ == SubwordType::words) {
      take(token, word, ByteSpan{first, end});
      continue;
    }
    cut(token, ends, sampler);
    for (std::size_t i = 0, start = 0; i < ends.size(); start = ends[i++]) {
      const std::string_view part = token.substr(start, ends[i] - start);
      const ByteSpan span{first + start, first + ends[i]};
      if (type_ == SubwordType::characters || i + 1 == ends.size()) {
        take(part, word, span);
      } else {
        piece.assign(part).append(separator());
        take(std::string_view(piece), word, span);
      }
    }
  }
}

}  // namespace heed
