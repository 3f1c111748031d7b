#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// The sentence pairs of a corpus as ids. The ids of all source sentences are one array, and the ids of all target
/// sentences are another array. A corpus takes 4 bytes for each piece and 20 bytes for each pair.
class ParallelCorpus {
 public:
  /// Appends a pair: the ids of both sentences without `<s>` and `</s>`. `line` is the number of the pair's line in the
  /// text; the first line is 1. Throws Error for a line number of 2^31 or more.
  void add(std::span<const std::int32_t> source, std::span<const std::int32_t> target, std::int64_t line);

  /// Returns the number of pairs.
  std::int64_t size() const { return static_cast<std::int64_t>(lines_.size()); }
  std::span<const std::int32_t> source(std::int64_t pair) const { return side(source_, pair); }
  std::span<const std::int32_t> target(std::int64_t pair) const { return side(target_, pair); }
  /// Returns the line number of a pair in the text, from 1.
  std::int64_t line(std::int64_t pair) const { return lines_[static_cast<std::size_t>(pair)]; }

  /// Returns the number of source tokens of a pair that the model reads: the pieces and `</s>`.
  std::int32_t source_tokens(std::int64_t pair) const { return static_cast<std::int32_t>(source(pair).size()) + 1; }
  /// Returns the number of target tokens of a pair that the decoder reads (`<s>` and the pieces) or predicts (the
  /// pieces and `</s>`).
  std::int32_t target_tokens(std::int64_t pair) const { return static_cast<std::int32_t>(target(pair).size()) + 1; }
  /// Returns the number of source tokens of all pairs, one `</s>` for each pair included.
  std::int64_t source_tokens() const { return static_cast<std::int64_t>(source_.ids.size()) + size(); }
  /// Returns the number of target tokens of all pairs, one `</s>` for each pair included.
  std::int64_t target_tokens() const { return static_cast<std::int64_t>(target_.ids.size()) + size(); }

  /// Returns a 64-bit hash of all ids and sentence boundaries in their order: a resumed training compares the hash to
  /// find out whether the corpus has changed.
  std::uint64_t fingerprint() const;
  /// Returns the bytes of memory that the corpus holds.
  std::int64_t memory() const;

 private:
  /// The sentences of one language: sentence i is ids[offsets[i]] ... ids[offsets[i + 1] - 1].
  struct Side {
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> offsets{0};
  };
  static std::span<const std::int32_t> side(const Side& side, std::int64_t pair) {
    const auto begin = side.offsets[static_cast<std::size_t>(pair)];
    const auto end = side.offsets[static_cast<std::size_t>(pair) + 1];
    return {side.ids.data() + begin, static_cast<std::size_t>(end - begin)};
  }

  Side source_, target_;
  std::vector<std::int32_t> lines_;  // the line number of each pair
};

}  // namespace heed
