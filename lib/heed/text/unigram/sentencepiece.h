#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/strings/scan.h"
#include "heed/text/strings/string_ids.h"
#include "heed/text/strings/vocabulary.h"
#include "heed/text/strings/word_cache.h"
#include "heed/text/unigram/sentencepiece_bpe.h"
#include "heed/text/unigram/sentencepiece_model.h"
#include "heed/text/unigram/sentencepiece_normalizer.h"
#include "heed/text/unigram/unigram.h"

namespace heed {

struct SubwordSampler;

/// Cuts lines into the pieces of a SentencePieceModel and joins pieces to text, piece for piece as SentencePiece 0.2.3
/// does. Immutable; any number of threads may use one object.
///
/// A piece has a number and an id. The number is the piece's index in SentencePieceModel::pieces. The id is its index
/// in heed's vocabulary: the four reserved pieces come first, then the pieces of the model in their order. Some pieces
/// of the model have no id: the unknown piece, control symbols, and pieces that a line of a vocabulary file cannot hold
/// (a piece with a line end, or one that equals a reserved piece).
class SentencePiece {
 public:
  /// Prepares `model` for use. Throws Error with `where` if SentencePieceModel::validate() refuses the model, or its
  /// map of replacements is damaged.
  SentencePiece(SentencePieceModel model, const std::string& where);

  const SentencePieceModel& model() const { return model_; }
  /// The pieces in the order of their ids.
  std::vector<std::string> vocabulary() const;

  /// Calls `take(piece, id, word)` for every piece of `line`; `word` is the index of the word that the piece belongs
  /// to. Neighbouring unknown characters are one piece. The string view `piece` is valid until `take` returns. With a
  /// `sampler` (for unigram models only), the segmentation is drawn at random.
  template <class Take>
  void encode(std::string_view line, Take&& take, SubwordSampler* sampler = nullptr) const;
  /// Calls `take(piece, id, word, span)` as encode() calls take(piece, id, word); `span` says which bytes of `line` the
  /// piece stands for. With a SentencePiece file, the space before a word belongs to the span of the word's first
  /// piece; with a model that heed has learnt, it does not.
  template <class Take>
  void encode_spans(std::string_view line, Take&& take, SubwordSampler* sampler = nullptr) const;
  /// Calls `take(piece, id, word)` for every piece of a segmentation `spans` of the text `normalized`.
  template <class Take>
  void pieces(std::string_view normalized, const std::vector<PieceSpan>& spans, Take&& take) const {
    pieces_with_ends(normalized, spans,
                     [&](std::string_view piece, std::int32_t id, int word, ByteSpan) { take(piece, id, word); });
  }

  /// Returns the normalised form of `line`, which unigram() cuts into pieces.
  std::string normalize(std::string_view line) const;
  /// The unigram model; nullptr if the model has another type.
  const UnigramModel* unigram() const { return unigram_ ? &*unigram_ : nullptr; }

  /// Returns the text of `pieces`: the reverse of encode(), except for what the normaliser has changed. A line end that
  /// byte pieces spell becomes a space.
  std::string decode(std::span<const std::string_view> pieces) const;
  /// Returns whether the model lacks `piece`, or `piece` is the unknown piece.
  bool is_unknown(std::string_view piece) const { return number_of(piece) == unknown_; }
  /// The text of the model's unknown piece; empty if the model has none.
  std::string_view unknown_piece() const;
  /// Returns, for each piece, the index of the word that the piece belongs to. A U+2581 starts a new word (or, with
  /// treat_whitespace_as_suffix, ends a word).
  std::vector<int> words_of(std::span<const std::string_view> pieces) const;

 private:
  using Kind = SentencePieceModel::Kind;

  const SentencePieceModel::Piece& piece(std::int32_t number) const {
    return model_.pieces[static_cast<std::size_t>(number)];
  }
  /// Returns the number of a piece in the model; the number of the unknown piece if the model lacks the piece.
  std::int32_t number_of(std::string_view piece) const;
  /// Replaces `spans` by the segmentation of a normalised line.
  void segment(std::string_view normalized, std::vector<PieceSpan>& spans, SubwordSampler* sampler) const;
  /// Cuts normalised text as a model of the type word or char does, without a search. Type word: each word, with the
  /// U+2581 before it, is a unit; type char: each character or user-defined piece is a unit. Each unit is looked up; a
  /// unit that is not a piece becomes the unknown piece.
  void look_up_units(std::string_view normalized, std::vector<PieceSpan>& spans) const;
  /// Cuts normalised text word by word; returns false if the text must be cut as a whole.
  bool segment_words(std::string_view normalized, std::vector<PieceSpan>& spans) const;
  /// Calls `take(piece, id, word, span)` for every piece of a segmentation; `span` says which bytes of `normalized` the
  /// piece stands for.
  template <class Take>
  void pieces_with_ends(std::string_view normalized, const std::vector<PieceSpan>& spans, Take&& take) const;

  /// Counts the words of a line, piece by piece.
  class Words {
   public:
    explicit Words(bool suffix) : suffix_(suffix) {}
    int of(std::string_view piece) {
      if (suffix_ ? ended_ : !first_ && piece.starts_with(kSpaceSymbol)) ++word_;
      first_ = false;
      ended_ = piece.ends_with(kSpaceSymbol);
      return word_;
    }

   private:
    bool suffix_, first_ = true, ended_ = false;
    int word_ = 0;
  };

  /// The segmentation of a word that segment_words() keeps in a cache: the pieces, where they end, and the margin.
  struct Segmentation {
    static constexpr std::size_t kMost = 12;

    Segmentation() = default;
    Segmentation(const std::vector<PieceSpan>& spans, float margin_of_word)
        : margin(margin_of_word), count(static_cast<std::uint8_t>(spans.size())) {
      for (std::size_t i = 0; i < spans.size(); ++i) {
        pieces[i] = spans[i].piece;
        ends[i] = static_cast<std::uint8_t>(spans[i].end);
      }
    }

    std::int32_t pieces[kMost];
    float margin = 0;  ///< by how much its score exceeds the score of the second-best segmentation
    std::uint8_t count = 0, ends[kMost];
  };
  using Cache = WordCache<Segmentation, 58>;

  SentencePieceModel model_;
  std::vector<std::int32_t> ids_;  // the id of each piece, by the piece's number
  StringIds texts_, reserved_;     // the pieces that encode text; all other pieces
  std::vector<std::int32_t> text_numbers_, reserved_numbers_;
  std::vector<std::int32_t> byte_numbers_;  // the numbers of the byte pieces; empty for a model without them
  std::int32_t unknown_ = -1;
  std::uint64_t identity_;
  bool by_words_ = true;  // whether segment_words() may be used: no piece has a U+2581 behind its first character
  SentencePieceNormalizer normalizer_;
  std::optional<SentencePieceNormalizer> denormalizer_;
  std::optional<UnigramModel> unigram_;
  std::optional<SentencePieceBpe> bpe_;
  PieceTrie user_defined_;  // the user-defined pieces, for the type char only
};

template <class Take>
void SentencePiece::pieces_with_ends(std::string_view normalized, const std::vector<PieceSpan>& spans,
                                     Take&& take) const {
  Words words(model_.treat_whitespace_as_suffix);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    std::size_t end = spans[i].end;
    if (spans[i].piece != unknown_) {
      const std::string_view text = normalized.substr(begin, end - begin);
      take(text, ids_[static_cast<std::size_t>(spans[i].piece)], words.of(text), ByteSpan{begin, end});
    } else if (byte_numbers_.empty()) {
      while (i + 1 < spans.size() && spans[i + 1].piece == unknown_) end = spans[++i].end;
      const std::string_view text = normalized.substr(begin, end - begin);
      take(text, kUnknownId, words.of(text), ByteSpan{begin, end});
    } else {
      for (std::size_t at = begin; at < end; ++at) {
        const std::int32_t byte = byte_numbers_[static_cast<unsigned char>(normalized[at])];
        const std::string_view text = piece(byte).text;
        take(text, ids_[static_cast<std::size_t>(byte)], words.of(text), ByteSpan{at, at + 1});
      }
    }
    begin = end;
  }
}

template <class Take>
void SentencePiece::encode(std::string_view line, Take&& take, SubwordSampler* sampler) const {
  thread_local std::string normalized;
  thread_local std::vector<PieceSpan> spans;
  normalizer_.normalize(line, normalized);
  segment(normalized, spans, sampler);
  pieces(normalized, spans, take);
}

template <class Take>
void SentencePiece::encode_spans(std::string_view line, Take&& take, SubwordSampler* sampler) const {
  std::string normalized;
  std::vector<PieceSpan> spans;
  std::vector<std::size_t> origins;
  normalizer_.normalize(line, normalized, &origins);
  segment(normalized, spans, sampler);
  pieces_with_ends(normalized, spans, [&](std::string_view piece, std::int32_t id, int word, ByteSpan span) {
    if (model_.source.empty() && piece.starts_with(kSpaceSymbol)) span.begin += kSpaceSymbol.size();
    take(piece, id, word, ByteSpan{origins[span.begin], origins[span.end]});
  });
}

}  // namespace heed
