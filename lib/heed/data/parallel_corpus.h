#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/data/examples.h"

namespace heed {

/// A link of an alignment between the pieces of a sentence pair, counted from 0: the target piece comes from the source
/// piece.
struct PieceLink {
  std::int32_t source = 0, target = 0;
  bool operator==(const PieceLink&) const = default;
};

/// The sentence pairs of a corpus as token ids. The ids of all source sentences are one array, and the ids of all
/// target sentences are another array. A corpus takes 4 bytes of memory for each subword and 20 bytes for each pair; an
/// aligned corpus takes 8 bytes more for each link and for each pair.
class ParallelCorpus final : public Examples {
 public:
  /// Appends a sentence pair: the ids of both sentences without `<s>` and `</s>`. `line` is the number of the pair's
  /// line in the text; the first line is 1. Throws Error for a line number of 2^31 or more.
  void add(std::span<const std::int32_t> source, std::span<const std::int32_t> target, std::int64_t line);

  /// Gives the pair that was added last its links, in ascending order of the target. The links of pieces that the pair
  /// does not have, because it was cropped, are left out. Must be called for all pairs or for none.
  void add_links(std::span<const PieceLink> links);

  /// Returns all pairs as bytes, in the byte order of this processor, which append() reads.
  std::string bytes() const;
  /// Appends the pairs of another corpus, which bytes() has written.
  void append(std::string_view bytes);
  /// Removes all pairs, and keeps the memory for others.
  void clear();

  /// Returns the number of sentence pairs in the corpus.
  std::int64_t size() const override { return static_cast<std::int64_t>(lines_.size()); }
  std::span<const std::int32_t> source(std::int64_t pair) const { return side(source_, pair); }
  std::span<const std::int32_t> target(std::int64_t pair) const { return side(target_, pair); }
  /// Returns whether the pairs have links, and the links of a pair.
  bool aligned() const { return !link_ends_.empty(); }
  std::span<const PieceLink> links(std::int64_t pair) const;
  /// Returns the number of the text's line, counted from 1, from which a sentence pair was read.
  std::int64_t line(std::int64_t pair) const override { return lines_[static_cast<std::size_t>(pair)]; }

  /// Returns the number of source tokens that the model reads for a sentence pair: the subwords and `</s>`.
  std::int32_t source_tokens(std::int64_t pair) const { return static_cast<std::int32_t>(source(pair).size()) + 1; }
  /// Returns the number of target tokens that the decoder reads for a sentence pair (`<s>` and the subwords), which is
  /// also the number of tokens that the decoder predicts (the subwords and `</s>`).
  std::int32_t target_tokens(std::int64_t pair) const { return static_cast<std::int32_t>(target(pair).size()) + 1; }
  ExampleSize size_of(std::int64_t pair) const override { return {source_tokens(pair), target_tokens(pair)}; }
  void fill(std::span<const std::int32_t> pairs, Batch& batch) const override;
  /// Returns the number of source tokens of all sentence pairs, including one `</s>` for each pair.
  std::int64_t source_tokens() const { return static_cast<std::int64_t>(source_.ids.size()) + size(); }
  /// Returns the number of target tokens of all sentence pairs, including one `</s>` for each pair.
  std::int64_t target_tokens() const { return static_cast<std::int64_t>(target_.ids.size()) + size(); }

  /// Returns a 64-bit hash of all token ids, sentence boundaries and links of the corpus, in order. A resumed training
  /// compares the hash with the earlier one to find out whether the corpus has changed.
  std::uint64_t fingerprint() const;
  /// Returns the number of bytes of memory that the corpus takes.
  std::int64_t memory() const;

 private:
  /// The sentences of one language as token ids: sentence i is ids[offsets[i]] ... ids[offsets[i + 1] - 1].
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
  // The links of all pairs; pair i has links_[link_ends_[i - 1]] ... links_[link_ends_[i] - 1]. Empty without links.
  std::vector<PieceLink> links_;
  std::vector<std::int64_t> link_ends_;
  std::vector<std::int32_t> lines_;  // for each sentence pair, the number of the line from which the pair was read
};

/// Windows of sentence pairs.
class ParallelWindows : public ExampleWindows {
 public:
  const ParallelCorpus& load(std::int64_t epoch, std::int64_t window) override = 0;
};

}  // namespace heed
