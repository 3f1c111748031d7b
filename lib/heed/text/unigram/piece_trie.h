#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// Finds all keys that a text starts with, and the number that the caller gave each key: a double-array trie over bytes
/// (Aoe 1989, "An efficient digital search algorithm by using a double-array structure"). Immutable; a node takes eight
/// bytes, and a step from a node to its child reads one array element.
///
/// All nodes lie in one array of units. A node with children has a base, and its child by the byte `c` is the unit at
/// index `base XOR c`. That unit stores the byte `c` as its label, so that a walk can tell a child of this node from a
/// unit that belongs to another node.
///
/// Example: the keys "a" (number 0) and "ab" (number 1), where 'a' is 97 and 'b' is 98. The root gets base 1, so that
/// the node "a" is unit 1 XOR 97 = 96. Base 2 does not suit the node "a", since unit 2 XOR 98 = 96 is taken. With base
/// 3 the node "ab" is unit 3 XOR 98 = 97. A walk for the text "ac" stops at unit 3 XOR 99 = 96, whose label is 'a' and
/// not 'c'.
class PieceTrie {
  /// One element of the trie's array; a unit that is in use holds one node. `link` has three parts: the base of the
  /// node's children (high 23 bits), kTaken in every unit that holds a node, and the label, which is the byte that
  /// leads from the parent to this node (low 8 bits). `value` is the number that the caller gave the key which ends at
  /// the node, or -1.
  struct Unit {
    std::uint32_t link = 0;
    std::int32_t value = -1;
  };
  static constexpr std::uint32_t kLabelBits = 9, kLabelMask = 0x1FF, kTaken = 0x100;

 public:
  PieceTrie() = default;
  /// Builds the trie of `keys`: pairs of a string and a number. The strings must be different and not empty (NUL is a
  /// byte like any other); the numbers are 0 or more. Throws Error if the array of the trie needs more than 8 million
  /// units.
  explicit PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> keys);

  bool empty() const { return units_.empty(); }

  /// The current node of the trie while a text is looked up byte by byte; a new walk starts at the root.
  class Walk {
   public:
    explicit Walk(const PieceTrie& trie) : units_(trie.units_.data()), base_(trie.root_) {}
    /// Moves from the current node to the child by `byte`. Returns false, without moving, if no key continues with
    /// `byte`.
    bool step(unsigned char byte) {
      const Unit unit = units_[base_ ^ byte];
      if ((unit.link & kLabelMask) != (kTaken | byte)) return false;
      base_ = unit.link >> kLabelBits;
      value_ = unit.value;
      return true;
    }
    /// Returns the number that the caller gave the key which ends at the current node, or -1 if no key ends there.
    std::int32_t value() const { return value_; }

   private:
    const Unit* units_;
    std::uint32_t base_;
    std::int32_t value_ = -1;
  };
  /// Returns a walk that starts at the root of the trie. The trie must not be empty.
  Walk walk() const { return Walk(*this); }

  /// Calls take(length of the key in bytes, number that the caller gave the key) for every key that `text` starts with,
  /// the shortest key first. Stops when `take` returns false.
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
