#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// Sentence pairs as ids, in one array a side: 4 bytes a piece and 20 a pair.
class ParallelCorpus {
 public:
  /// Pieces without `<s>` and `</s>`; `line` is where the pair stood in the text, from 1.
  void add(std::span<const std::int32_t> source, std::span<const std::int32_t> target, std::int64_t line);

  std::int64_t size() const { return static_cast<std::int64_t>(lines_.size()); }
  std::span<const std::int32_t> source(std::int64_t pair) const { return side(source_, pair); }
  std::span<const std::int32_t> target(std::int64_t pair) const { return side(target_, pair); }
  std::int64_t line(std::int64_t pair) const { return lines_[static_cast<std::size_t>(pair)]; }

  /// Tokens the model sees of a pair: pieces and one more, `</s>` (source) or `<s>` / `</s>` (target).
  std::int32_t source_tokens(std::int64_t pair) const { return static_cast<std::int32_t>(source(pair).size()) + 1; }
  std::int32_t target_tokens(std::int64_t pair) const { return static_cast<std::int32_t>(target(pair).size()) + 1; }
  /// The same of all pairs.
  std::int64_t source_tokens() const { return static_cast<std::int64_t>(source_.ids.size()) + size(); }
  std::int64_t target_tokens() const { return static_cast<std::int64_t>(target_.ids.size()) + size(); }

  /// Changes whenever an id, a sentence boundary or the order of the pairs does.
  std::uint64_t fingerprint() const;
  /// Bytes held.
  std::int64_t memory() const;

 private:
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
  std::vector<std::int32_t> lines_;
};

}  // namespace heed
