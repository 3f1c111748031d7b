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

/// How a token becomes pieces: it is one (words); byte-pair merges, with a separator at the end of every piece but the
/// word's last (bpe); the pieces of a unigram language model, the first of a word with U+2581 in front (unigram); its
/// characters, with `<space>` between words (char). A SentencePiece file cuts whole lines its own way; it is no type
/// that build-vocab learns.
enum class SubwordType { words, bpe, unigram, characters, sentencepiece };

template <>
struct EnumNames<SubwordType> {
  static constexpr std::pair<SubwordType, std::string_view> values[] = {{SubwordType::words, "words"},
                                                                        {SubwordType::bpe, "bpe"},
                                                                        {SubwordType::unigram, "unigram"},
                                                                        {SubwordType::characters, "char"}};
};

/// Between the words of a character model. Longer than a character, so no text can be taken for it.
constexpr std::string_view kSpacePiece = "<space>";

/// What stored models call the type of a SentencePiece file.
constexpr std::string_view kSentencePieceType = "sentencepiece";

/// The second stage of the way from text to ids: tokens to pieces and back. Immutable; serves any number of threads.
class Subwords {
 public:
  /// Words or characters.
  explicit Subwords(SubwordType type = SubwordType::words) : type_(type) {}
  explicit Subwords(std::shared_ptr<const BpeEncoder> bpe) : type_(SubwordType::bpe), bpe_(std::move(bpe)) {}
  /// Of a SentencePiece file, or a unigram model of heed's own.
  explicit Subwords(std::shared_ptr<const SentencePiece> pieces)
      : type_(pieces->model().source.empty() ? SubwordType::unigram : SubwordType::sentencepiece),
        sentencepiece_(std::move(pieces)) {}

  SubwordType type() const { return type_; }
  /// As stored models name the type.
  std::string_view type_name() const {
    return type_ == SubwordType::sentencepiece ? kSentencePieceType : enum_name(type_);
  }
  const BpeEncoder* bpe() const { return bpe_.get(); }
  /// Of the types unigram and sentencepiece; otherwise nullptr.
  const SentencePiece* sentencepiece() const { return sentencepiece_.get(); }

  /// Calls `take(piece, word)` for every piece of space-separated tokens, with the index of its token (`<space>`
  /// counts to the token before it). The view lives until `take` returns. With a sampler, one of many segmentations.
  template <class Take>
  void split(std::string_view tokens, Take&& take, SubwordSampler* sampler = nullptr) const {
    if (sentencepiece_)
      return sentencepiece_->encode(
          tokens, [&](std::string_view piece, std::int32_t, int word) { take(piece, word); }, sampler);
    split_spans(
        tokens, [&](std::string_view piece, int word, ByteSpan) { take(piece, word); }, sampler);
  }
  /// The same with `take(piece, word, span)`, where the span says which bytes of `tokens` the piece stands for.
  template <class Take>
  void split_spans(std::string_view tokens, Take&& take, SubwordSampler* sampler = nullptr) const;
  std::vector<std::string> split(std::string_view tokens) const;
  /// Appends the pieces with a space between them.
  void append_pieces(std::string_view tokens, std::string& out, SubwordSampler* sampler = nullptr) const;

  /// Space-separated tokens from pieces: undoes split().
  std::string join(const std::vector<std::string_view>& pieces) const;
  /// The index of the token each piece belongs to.
  std::vector<int> words_of(const std::vector<std::string_view>& pieces) const;

 private:
  /// Byte ends of the pieces of one token.
  void cut(std::string_view token, std::vector<std::size_t>& ends, SubwordSampler* sampler) const;
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
