#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "heed/text/unigram.h"

namespace heed {

/// The segmentations of the words of one thread: two places for each hash, of which the one used last stays.
class SentencePieceCache {
 public:
  static constexpr std::size_t kLongestWord = 41, kMostPieces = 12;

  struct Entry {
    std::uint8_t length = 0, count = 0;
    std::uint8_t used_last = 0;  ///< of a pair's first entry: which of the two
    char bytes[kLongestWord];
    std::uint8_t ends[kMostPieces];
    std::int32_t pieces[kMostPieces];
    float margin = 0;  ///< by which the segmentation is better than any other

    bool is(std::string_view word) const {
      return length == word.size() && std::memcmp(bytes, word.data(), word.size()) == 0;
    }
  };

  /// `identity`: that of the model whose words these are.
  explicit SentencePieceCache(std::uint64_t identity) : identity_(identity) {}
  std::uint64_t identity() const { return identity_; }

  /// Of a word of at most kLongestWord bytes; nullptr where it is not there. Lives until the next call.
  const Entry* find(std::string_view word, std::uint64_t hash) {
    Entry* pair = pair_of(hash);
    for (std::uint8_t i = 0; i < 2; ++i) {
      if (!pair[i].is(word)) continue;
      pair->used_last = i;
      return &pair[i];
    }
    return nullptr;
  }

  void remember(std::string_view word, std::uint64_t hash, const std::vector<PieceSpan>& spans, float margin) {
    if (spans.size() > kMostPieces) return;
    Entry* pair = pair_of(hash);
    pair->used_last ^= 1;
    Entry& entry = pair[pair->used_last];
    entry.length = static_cast<std::uint8_t>(word.size());
    entry.count = static_cast<std::uint8_t>(spans.size());
    entry.margin = margin;
    std::copy(word.begin(), word.end(), entry.bytes);
    for (std::size_t i = 0; i < kMostPieces; ++i) {
      const bool there = i < spans.size();
      entry.ends[i] = there ? static_cast<std::uint8_t>(spans[i].end) : std::uint8_t{0};
      entry.pieces[i] = there ? spans[i].piece : 0;
    }
  }

 private:
  static constexpr std::size_t kPairs = 16384;

  Entry* pair_of(std::uint64_t hash) { return &entries_[2 * (hash & (kPairs - 1))]; }

  std::uint64_t identity_;
  std::vector<Entry> entries_ = std::vector<Entry>(2 * kPairs);
};

}  // namespace heed
