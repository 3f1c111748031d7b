#include "heed/text/unigram/piece_trie.h"

#include <algorithm>
#include <array>
#include <bit>

#include "heed/base/error.h"

namespace heed {

namespace {

/// A set of units (elements of the trie's array) of one block of 256 units: bit i stands for unit i of the block.
using Bits = std::array<std::uint64_t, 4>;

constexpr Bits kAll{~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}};

void clear(Bits& bits, std::size_t at) {
  bits[at / 64] &= ~(std::uint64_t{1} << at % 64);
}

/// Returns `bits` with bit i moved to position i XOR `label`. A node of the double array with the base b has its child
/// by the byte `label` in the unit b XOR `label`. If bit i of `bits` says whether unit i of a block is free, bit b of
/// the result therefore says whether this child of a node with base b would lie in a free unit.
Bits moved(const Bits& bits, unsigned char label) {
  // The mask kLower[i] selects the lower half of each group of 2^(i+1) bits. If bit i of `label` is set, moving every
  // bit to its position XOR `label` exchanges the two halves of each such group.
  constexpr std::uint64_t kLower[6] = {0x5555555555555555u, 0x3333333333333333u, 0x0F0F0F0F0F0F0F0Fu,
                                       0x00FF00FF00FF00FFu, 0x0000FFFF0000FFFFu, 0x00000000FFFFFFFFu};
  Bits out{};
  for (std::size_t word = 0; word < out.size(); ++word) {
    std::uint64_t x = bits[word];
    for (int i = 0; i < 6; ++i)
      if (label >> i & 1) x = (x & kLower[i]) << (1 << i) | (x >> (1 << i) & kLower[i]);
    out[word ^ (label >> 6)] = x;
  }
  return out;
}

}  // namespace

/// Builds the array of units, in which each unit holds one node of the trie. Each call of place() puts all children of
/// one node into free units, under a base that no other node has: the child by the byte c is the unit at index `base
/// XOR c`. `base XOR c` differs from `base` in the low 8 bits only, so that all children of a node lie in the block of
/// 256 units that contains the base. The search for a base looks at the last kOpenBlocks blocks only, which bounds the
/// time for each node.
class PieceTrie::Builder {
 public:
  Builder(std::vector<std::pair<std::string_view, std::int32_t>>& keys, std::vector<Unit>& units)
      : keys_(keys), units_(units) {
    std::sort(keys_.begin(), keys_.end());
    add_block();
    clear(blocks_[0].no_base, 0);  // no node gets base 0, which means "no children"
  }

  /// Puts all nodes of the trie into the array of units, and returns the base of the root.
  std::uint32_t build() {
    const std::uint32_t root = place({0, keys_.size(), 0, kNoUnit});
    while (!open_.empty()) {
      const Range range = open_.back();
      open_.pop_back();
      place(range);
    }
    return root;
  }

 private:
  static constexpr std::size_t kBlock = 256, kOpenBlocks = 4, kMostUnits = std::size_t{1} << 23;
  static constexpr std::size_t kNoUnit = SIZE_MAX;

  /// A node whose children are not in the array yet: the sorted keys from index `begin` to before `end` have the same
  /// first `depth` bytes, and `unit` is the array index of the node to which these bytes lead.
  struct Range {
    std::size_t begin, end, depth, unit;
  };

  /// The state of one block of 256 units: `free` has the units that hold no node yet, and `no_base` has the units whose
  /// index is not the base of a node yet.
  struct Block {
    Bits free = kAll, no_base = kAll;
  };

  void add_block() {
    if (units_.size() + kBlock > kMostUnits) throw Error("the pieces are too many or too long for one vocabulary");
    units_.resize(units_.size() + kBlock);
    blocks_.emplace_back();
  }

  /// Returns a base for which the units `base XOR label` of all bytes `label` in `labels_` are free. Adds a block of
  /// units if the last blocks have no such base.
  std::uint32_t find_base() {
    for (std::size_t block = blocks_.size() - std::min(blocks_.size(), kOpenBlocks); block < blocks_.size(); ++block) {
      Bits fits = blocks_[block].no_base;
      for (const unsigned char label : labels_) {
        const Bits free = moved(blocks_[block].free, label);
        for (std::size_t i = 0; i < fits.size(); ++i) fits[i] &= free[i];
      }
      for (std::size_t i = 0; i < fits.size(); ++i)
        if (fits[i] != 0)
          return static_cast<std::uint32_t>(block * kBlock + 64 * i +
                                            static_cast<std::size_t>(std::countr_zero(fits[i])));
    }
    add_block();
    return static_cast<std::uint32_t>(units_.size() - kBlock);
  }

  /// Puts the children of the node that `range` describes into free units, and returns the base of these children (0 if
  /// the node has no children).
  std::uint32_t place(Range range) {
    if (keys_[range.begin].first.size() == range.depth) ++range.begin;  // skip the key that ends at the node itself
    labels_.clear();
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto label = static_cast<unsigned char>(keys_[i].first[range.depth]);
      if (labels_.empty() || labels_.back() != label) labels_.push_back(label);
    }
    if (labels_.empty()) return 0;
    const std::uint32_t base = find_base();
    clear(blocks_[base / kBlock].no_base, base % kBlock);
    if (range.unit != kNoUnit) units_[range.unit].link |= base << kLabelBits;
    for (std::size_t i = range.begin; i < range.end;) {
      const char byte = keys_[i].first[range.depth];
      std::size_t end = i + 1;
      while (end < range.end && keys_[end].first[range.depth] == byte) ++end;
      const std::size_t unit = base ^ static_cast<unsigned char>(byte);
      units_[unit].link = kTaken | static_cast<unsigned char>(byte);
      if (keys_[i].first.size() == range.depth + 1) units_[unit].value = keys_[i].second;
      clear(blocks_[unit / kBlock].free, unit % kBlock);
      open_.push_back({i, end, range.depth + 1, unit});
      i = end;
    }
    return base;
  }

  std::vector<std::pair<std::string_view, std::int32_t>>& keys_;
  std::vector<Unit>& units_;
  std::vector<Block> blocks_;
  std::vector<Range> open_;
  std::vector<unsigned char> labels_;
};

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> keys) {
  if (!keys.empty()) root_ = Builder(keys, units_).build();
}

}  // namespace heed
