#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// Strings with a number each, for finding all that a text starts with: a double-array trie (Aoe 1989, "An efficient
/// digital search algorithm by using a double-array structure") over bytes, where the child of a node by byte `c`
/// stands at `base XOR c`. Immutable; eight bytes a node, and a step is one load.
class PieceTrie {
  /// A node: the base of its children, whether it is one, the byte that leads to it; the number of its key.
  struct Unit {
    std::uint32_t link = 0;
    std::int32_t value = -1;
  };
  static constexpr std::uint32_t kLabelBits = 9, kLabelMask = 0x1FF, kTaken = 0x100;

 public:
  PieceTrie() = default;
  /// Keys (not empty, all different; NUL is a byte like any other) and their numbers (0 or more). Throws Error where
  /// there are more than 8 million nodes.
  explicit PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> keys);

  bool empty() const { return units_.empty(); }

  /// Where a walk through the trie stands: at the root to begin with.
  class Walk {
   public:
    explicit Walk(const PieceTrie& trie) : units_(trie.units_.data()), base_(trie.root_) {}
    /// Goes down by a byte; false where no key goes on like this.
    bool step(unsigned char byte) {
      const Unit unit = units_[base_ ^ byte];
      if ((unit.link & kLabelMask) != (kTaken | byte)) return false;
      base_ = unit.link >> kLabelBits;
      value_ = unit.value;
      return true;
    }
    /// The number of the key that ends here, or negative.
    std::int32_t value() const { return value_; }

   private:
    const Unit* units_;
    std::uint32_t base_;
    std::int32_t value_ = -1;
  };
  /// On a trie that is not empty.
  Walk walk() const { return Walk(*this); }

  /// Calls take(bytes, number) for every key that `text` starts with, the shortest first, until it returns false.
  template <class Take>
  void prefixes(std::string_view text, Take&& take) const {
    if (empty()) return;
    Walk at = walk();
    for (std::size_t i = 0; i < text.size() && at.step(static_cast<unsigned char>(text[i])); ++i)
      if (at.value() >= 0 && !take(i + 1, at.value())) return;
  }

 private:
  class Builder;
  std::vector<Unit> units_;
  std::uint32_t root_ = 0;
};

}  // namespace heed
