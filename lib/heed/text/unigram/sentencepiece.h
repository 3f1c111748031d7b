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

/// Cuts lines into the pieces of a SentencePieceModel and joins pieces to text, with exactly the same pieces as
/// SentencePiece 0.2.3. Immutable; any number of threads may use one object.
///
/// A piece has a number and an id. The number is the piece's index in SentencePieceModel::pieces. The id is its index
/// in heed's vocabulary: the four reserved pieces come first, then the pieces of the model in their order. Some pieces
/// of the model have no id: the unknown piece, control symbols, and pieces that a line of a vocabulary file cannot hold
/// (a piece with a line end, or one that equals a reserved piece).
class SentencePiece {
 public:
  /// Prepares `model` for use. Throws Error with the file name `where` if SentencePieceModel::validate() rejects the
  /// model, or if the model's precompiled map, by which text is normalised, is damaged.
  SentencePiece(SentencePieceModel model, const std::string& where);

  const SentencePieceModel& model() const { return model_; }
  /// Returns the pieces of heed's vocabulary (reserved pieces first) in the order of their ids.
  std::vector<std::string> vocabulary() const;

  /// Normalises `line`, cuts it into pieces, and calls `take(piece, id, word)` for every piece; `word` is the index of
  /// the word that contains the piece. Neighbouring unknown characters are one piece. The string view `piece` is valid
  /// until `take` returns. With a `sampler` (for unigram models only), the segmentation is drawn at random.
  template <class Take>
  void encode(std::string_view line, Take&& take, SubwordSampler* sampler = nullptr) const;
  /// Calls `take(piece, id, word, span)` for every piece of `line`: like encode(), with one argument more. `span` is
  /// the range of bytes of `line` that the piece stands for. If the model comes from a `.model` file, the space before
  /// a word belongs to the span of the word's first piece; if heed has learnt the model, the space belongs to no span.
  template <class Take>
  void encode_spans(std::string_view line, Take&& take, SubwordSampler* sampler = nullptr) const;
  /// Calls `take(piece, id, word)` for every piece of a segmentation: the piece as text, its id in the model, and the
  /// index of the word that contains the piece. `spans` is the segmentation, and `normalized` is the text that was cut,
  /// in normalised form.
  template <class Take>
  void pieces(std::string_view normalized, const std::vector<PieceSpan>& spans, Take&& take) const {
    pieces_with_ends(normalized, spans,
                     [&](std::string_view piece, std::int32_t id, int word, ByteSpan) { take(piece, id, word); });
  }

  /// Returns the normalised form of `line`, which is the text that the functions of unigram() can cut into pieces.
  std::string normalize(std::string_view line) const;
  /// Returns the unigram model; nullptr if the SentencePiece model has another type than unigram.
  const UnigramModel* unigram() const { return unigram_ ? &*unigram_ : nullptr; }

  /// Joins `pieces` to text and returns the text: the reverse of encode(), except for the changes that the normaliser
  /// has made. If byte pieces such as <0x0A> spell a line end, the line end becomes a space.
  std::string decode(std::span<const std::string_view> pieces) const;
  /// Returns whether `piece` is the unknown piece of the model, or is not a piece of the model.
  bool is_unknown(std::string_view piece) const { return number_of(piece) == unknown_; }
  /// Returns the text of the model's unknown piece (usually <unk>); empty if the model has no unknown piece.
  std::string_view unknown_piece() const;
  /// Returns, for each piece, the index of the word that contains the piece. A U+2581 starts a new word (or, in models
  /// with treat_whitespace_as_suffix, ends a word).
  std::vector<int> words_of(std::span<const std::string_view> pieces) const;

 private:
  using Kind = SentencePieceModel::Kind;

  const SentencePieceModel::Piece& piece(std::int32_t number) const {
    return model_.pieces[static_cast<std::size_t>(number)];
  }
  /// Returns the index of the piece with the text `piece` in SentencePieceModel::pieces; the index of the unknown piece
  /// if the model has no such piece.
  std::int32_t number_of(std::string_view piece) const;
  /// Replaces `spans` by the segmentation of the normalised line `normalized` into pieces. With a `sampler`, a unigram
  /// model draws the segmentation at random.
  void segment(std::string_view normalized, std::vector<PieceSpan>& spans, SubwordSampler* sampler) const;
  /// Cuts normalised text as a SentencePiece model of the type word or char does, without comparing segmentations. For
  /// the type word, each word with the U+2581 before it is a unit; for the type char, each character or user-defined
  /// piece is a unit. A unit that is a piece of the model becomes that piece; any other unit becomes the unknown piece.
  void look_up_units(std::string_view normalized, std::vector<PieceSpan>& spans) const;
  /// Cuts the normalised text `normalized` into pieces word by word, with a cache of words. Returns false, with an
  /// unusable result, if the text must be cut as a whole.
  bool segment_words(std::string_view normalized, std::vector<PieceSpan>& spans) const;
  /// Calls `take(piece, id, word, span)` for every piece of the segmentation `spans` of the text `normalized`; `span`
  /// is the range of bytes of `normalized` that the piece stands for.
  template <class Take>
  void pieces_with_ends(std::string_view normalized, const std::vector<PieceSpan>& spans, Take&& take) const;

  /// Counts the words of a line. The caller gives the pieces of the line to of(), which returns the index of the word
  /// that contains the piece.
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

  /// The segmentation of one word, as the cache of segment_words() stores it: the word's pieces (as indices in
  /// SentencePieceModel::pieces), the byte offsets in the word at which they end, and the margin.
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
    /// By how much the score of this segmentation exceeds the score of the word's second-best segmentation.
    float margin = 0;
    std::uint8_t count = 0, ends[kMost];
  };
  using Cache = WordCache<Segmentation, 58>;

  SentencePieceModel model_;
  // The id of each piece in heed's vocabulary, by the piece's index in SentencePieceModel::pieces; kUnknownId for a
  // piece without an id.
  std::vector<std::int32_t> ids_;
  // texts_ has the pieces that stand for text (normal, user-defined and unused pieces); reserved_ has all other pieces.
  StringIds texts_, reserved_;
  std::vector<std::int32_t> text_numbers_, reserved_numbers_;
  // For each byte, the index of its byte piece (such as <0x41>) in SentencePieceModel::pieces; empty if the model has
  // no byte pieces.
  std::vector<std::int32_t> byte_numbers_;
  std::int32_t unknown_ = -1;
  std::uint64_t identity_;
  // Whether segment_words(), which segments each word of a line by itself, gives the same pieces as segmenting the
  // whole line: no piece reaches into a second word (has a U+2581 behind its first character), and the scores of a
  // unigram model are so small that no sum of scores is reset to 0 (UnigramModel::has_small_scores()).
  bool by_words_ = true;
  SentencePieceNormalizer normalizer_;
  std::optional<SentencePieceNormalizer> denormalizer_;
  std::optional<UnigramModel> unigram_;
  std::optional<SentencePieceBpe> bpe_;
  // The user-defined pieces of a model of the type char; empty for all other types.
  PieceTrie user_defined_;
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
