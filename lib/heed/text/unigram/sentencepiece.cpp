#include "heed/text/unigram/sentencepiece.h"

#include <atomic>
#include <cmath>

#include "heed/base/utf8.h"
#include "heed/text/bpe/bpe.h"

namespace heed {
namespace {

using Kind = SentencePieceModel::Kind;

/// Returns a trie whose keys are the user-defined pieces of `model`.
PieceTrie user_defined_pieces(const SentencePieceModel& model) {
  std::vector<std::pair<std::string_view, std::int32_t>> keys;
  for (const auto& piece : model.pieces)
    if (piece.kind == Kind::user_defined) keys.emplace_back(piece.text, 0);
  return PieceTrie(std::move(keys));
}

/// Appends the text of `piece` to `out`, with a space in place of each U+2581.
void append_with_spaces(std::string_view piece, std::string& out) {
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t symbol = std::min(piece.find(kSpaceSymbol, at), piece.size());
    out.append(piece, at, symbol - at);
    if (symbol < piece.size()) out += ' ';
    at = symbol + kSpaceSymbol.size();
  }
}

/// Appends `bytes` to `out` as UTF-8, and empties `bytes`. The caller has collected `bytes` from byte pieces such as
/// <0x41>. A byte that is not part of a UTF-8 character becomes U+FFFD, and a line end becomes a space.
void append_bytes(std::string& bytes, std::string& out) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t start = at;
    bool valid = true;
    decode_utf8(bytes, at, &valid);
    if (!valid) {
      at = start + 1;
      out += "\xEF\xBF\xBD";
    } else if (bytes[start] == '\n') {
      out += ' ';
    } else {
      out.append(bytes, start, at - start);
    }
  }
  bytes.clear();
}

}  // namespace

SentencePiece::SentencePiece(SentencePieceModel model, const std::string& where)
    : model_((model.validate(where), std::move(model))),
      normalizer_(model_.normalizer, model_.treat_whitespace_as_suffix, user_defined_pieces(model_), where) {
  if (model_.denormalizer && !model_.denormalizer->precompiled_charsmap.empty())
    denormalizer_.emplace(*model_.denormalizer, false, PieceTrie(), where);
  static std::atomic<std::uint64_t> models = 0;
  identity_ = ++models;
  if (model_.byte_fallback) byte_numbers_.resize(256);
  std::int32_t next_id = kReservedIds;
  for (std::size_t i = 0; i < model_.pieces.size(); ++i) {
    const auto& entry = model_.pieces[i];
    const auto number = static_cast<std::int32_t>(i);
    const bool text = entry.kind == Kind::normal || entry.kind == Kind::user_defined || entry.kind == Kind::unused;
    (text ? texts_ : reserved_).add(entry.text);
    (text ? text_numbers_ : reserved_numbers_).push_back(number);
    if (text && entry.text.find(kSpaceSymbol, 1) != std::string::npos) by_words_ = false;
    if (entry.kind == Kind::unknown) unknown_ = number;
    if (entry.kind == Kind::byte) byte_numbers_[static_cast<std::size_t>(byte_of_piece(entry.text))] = number;
    const bool has_id = entry.kind == Kind::byte || (text && Vocabulary::is_piece(entry.text));
    ids_.push_back(has_id ? next_id++ : kUnknownId);
  }
  switch (model_.type) {
    case SentencePieceModel::Type::unigram:
      unigram_.emplace(model_);
      by_words_ = by_words_ && unigram_->has_small_scores();
      break;
    case SentencePieceModel::Type::bpe:
      bpe_.emplace(model_);
      break;
    case SentencePieceModel::Type::word:
      break;
    case SentencePieceModel::Type::character:
      user_defined_ = user_defined_pieces(model_);
      break;
  }
}

std::vector<std::string> SentencePiece::vocabulary() const {
  std::vector<std::string> pieces;
  for (std::int32_t id = 0; id < kReservedIds; ++id) pieces.emplace_back(reserved_piece(id));
  for (std::size_t i = 0; i < ids_.size(); ++i)
    if (ids_[i] >= kReservedIds) pieces.push_back(model_.pieces[i].text);
  return pieces;
}

std::string SentencePiece::normalize(std::string_view line) const {
  std::string normalized;
  normalizer_.normalize(line, normalized);
  return normalized;
}

void SentencePiece::segment(std::string_view normalized, std::vector<PieceSpan>& spans, SubwordSampler* sampler) const {
  if (!unigram_ && !bpe_) {
    look_up_units(normalized, spans);
  } else if (unigram_ && sampler) {
    spans = unigram_->sample(normalized, *sampler).spans;
  } else if (by_words_ && segment_words(normalized, spans)) {
    return;
  } else if (unigram_) {
    unigram_->segment(normalized, spans);
  } else {
    bpe_->segment(normalized, spans);
  }
}

void SentencePiece::look_up_units(std::string_view normalized, std::vector<PieceSpan>& spans) const {
  const auto end_of_unit = [&](std::size_t at) {
    if (model_.type == SentencePieceModel::Type::word)
      return std::min(normalized.find(kSpaceSymbol, at + 1), normalized.size());
    std::size_t end = at;
    decode_utf8(normalized, end);
    user_defined_.prefixes(normalized.substr(at), [&](std::size_t bytes, std::int32_t) {
      end = at + bytes;
      return true;
    });
    return end;
  };
  spans.clear();
  for (std::size_t at = 0; at < normalized.size();) {
    const std::size_t end = end_of_unit(at);
    const std::int32_t found = texts_.find(normalized.substr(at, end - at));
    spans.push_back(
        {found == kNoId ? unknown_ : text_numbers_[static_cast<std::size_t>(found)], static_cast<std::uint32_t>(end)});
    at = end;
  }
}

/// Cuts a line into pieces word by word, with a cache of the segmentations of words (a word reaches from one U+2581 to
/// the next). The result is exactly the segmentation of the whole line. For a unigram model this needs care:
/// UnigramModel::segment() adds 32-bit scores along the whole line, so that the rounding error of the sum so far can
/// decide between two segmentations of a word. A cached segmentation is therefore used only if its margin (its score
/// minus the score of the second-best segmentation) is larger than any rounding error in the sum of this line. If the
/// margin is smaller, the word is segmented again, starting from the sum so far. Returns false if the sum becomes so
/// large that segment() might reset the sum to 0, or if a word is longer than 1,000 bytes.
bool SentencePiece::segment_words(std::string_view normalized, std::vector<PieceSpan>& spans) const {
  constexpr std::size_t kMostWordBytes = 1000;
  constexpr float kMostSum = 50000;
  // A bound for the relative error of one addition of 32-bit floats: adding a piece's score to the sum of a line rounds
  // by less than kRounding times the size of the sum.
  constexpr float kRounding = 1.0f / (1 << 21);
  Cache& cache = cache_of_thread<Cache>(identity_);
  thread_local std::vector<PieceSpan> word_spans;
  spans.clear();
  float sum = 0;
  struct Word {
    std::string_view text;
    std::uint64_t hash;
  };
  const auto word_at = [&](std::size_t begin) {
    const std::size_t end = std::min(normalized.find(kSpaceSymbol, begin + 1), normalized.size());
    const std::string_view text = normalized.substr(begin, end - begin);
    const Word word{text, hash_of(text)};
    cache.expect(word.hash);
    return word;
  };
  Word next = normalized.empty() ? Word{} : word_at(0);
  for (std::size_t begin = 0; begin < normalized.size();) {
    const std::string_view word = next.text;
    const std::uint64_t hash = next.hash;
    const std::size_t end = begin + word.size();
    if (end < normalized.size()) next = word_at(end);
    const bool remembers = word.size() <= Cache::kLongestWord;
    if (unigram_ && (word.size() > kMostWordBytes || std::abs(sum) > kMostSum)) return false;
    const Cache::Entry* known = remembers ? cache.find(word, hash) : nullptr;
    const std::size_t spans_before = spans.size();
    float after = sum, margin = 0;
    const auto add = [&](std::int32_t piece, std::size_t piece_end) {
      spans.push_back({piece, static_cast<std::uint32_t>(begin + piece_end)});
      if (unigram_) after = unigram_->score(piece) + after;
    };
    if (known) {
      margin = known->value.margin;
      for (std::size_t i = 0; i < known->value.count; ++i) add(known->value.pieces[i], known->value.ends[i]);
    } else {
      if (unigram_)
        margin = static_cast<float>(unigram_->segment_with_margin(word, word_spans));
      else
        bpe_->segment(word, word_spans);
      for (const PieceSpan& span : word_spans) add(span.piece, span.end);
      if (remembers && word_spans.size() <= Segmentation::kMost)
        cache.add(word, hash) = Segmentation(word_spans, margin);
    }
    const float size_of_sums = std::abs(sum) + std::abs(after) + 8;
    if (unigram_ && margin <= kRounding * static_cast<float>(word.size()) * size_of_sums) {
      spans.resize(spans_before);
      after = unigram_->segment(word, word_spans, sum);
      for (const PieceSpan& span : word_spans)
        spans.push_back({span.piece, span.end + static_cast<std::uint32_t>(begin)});
    }
    sum = after;
    begin = end;
  }
  return true;
}

std::int32_t SentencePiece::number_of(std::string_view piece) const {
  if (const std::int32_t found = reserved_.find(piece); found != kNoId)
    return reserved_numbers_[static_cast<std::size_t>(found)];
  const std::int32_t found = texts_.find(piece);
  return found == kNoId ? unknown_ : text_numbers_[static_cast<std::size_t>(found)];
}

std::string_view SentencePiece::unknown_piece() const {
  return unknown_ < 0 ? std::string_view() : std::string_view(piece(unknown_).text);
}

std::string SentencePiece::decode(std::span<const std::string_view> pieces) const {
  std::string out, bytes;
  const bool strips = model_.normalizer.add_dummy_prefix || model_.normalizer.remove_extra_whitespaces;
  bool at_start = true;
  for (std::string_view text : pieces) {
    const std::int32_t number = number_of(text);
    const Kind kind = number < 0 ? Kind::unknown : piece(number).kind;
    if (kind == Kind::byte) {
      bytes += static_cast<char>(byte_of_piece(text));
      continue;
    }
    append_bytes(bytes, out);
    at_start = at_start && out.empty();
    if (kind == Kind::control) continue;
    if (kind == Kind::unknown) {
      out += number >= 0 && piece(number).text == text ? std::string_view(model_.unk_surface) : text;
    } else {
      const bool stripped = at_start && strips && text.starts_with(kSpaceSymbol);
      if (stripped) text.remove_prefix(kSpaceSymbol.size());
      append_with_spaces(text, out);
      // If the model does not remove extra spaces of the text (remove_extra_whitespaces is false), decoding removes
      // only the one U+2581 that encoding has added at the start of the text.
      if (stripped && !model_.normalizer.remove_extra_whitespaces) at_start = false;
    }
    if (!out.empty()) at_start = false;
  }
  append_bytes(bytes, out);
  if (!denormalizer_) return out;
  denormalizer_->normalize(out, bytes);
  return bytes;
}

std::vector<int> SentencePiece::words_of(std::span<const std::string_view> pieces) const {
  std::vector<int> out;
  Words words(model_.treat_whitespace_as_suffix);
  for (const std::string_view piece : pieces) out.push_back(words.of(piece));
  return out;
}

}  // namespace heed
