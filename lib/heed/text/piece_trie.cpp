#include "heed/text/piece_trie.h"

#include <algorithm>
#include <array>

#include "heed/base/error.h"

namespace heed {

/// Places the nodes one after the other, each with all its children at once, in the last blocks of 256 units.
class PieceTrie::Builder {
 public:
  Builder(std::vector<std::pair<std::string_view, std::int32_t>>& keys, std::vector<Unit>& units)
      : keys_(keys), units_(units) {
    std::sort(keys_.begin(), keys_.end());
    add_block();
    is_base_[0] = true;  // of the nodes without children
  }

  /// Returns the base of the root.
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

  /// The keys that share their first `depth` bytes, and the unit of the node that these lead to.
  struct Range {
    std::size_t begin, end, depth, unit;
  };

  void add_block() {
    if (units_.size() + kBlock > kMostUnits) throw Error("the pieces are too many or too long for one vocabulary");
    units_.resize(units_.size() + kBlock);
    is_base_.resize(units_.size());
    free_.push_back(kBlock);
  }

  bool taken(std::size_t unit) const { return (units_[unit].link & kTaken) != 0; }

  /// A base under which all `labels` are free.
  std::uint32_t find_base() {
    const std::size_t blocks = units_.size() / kBlock;
    for (std::size_t block = blocks - std::min(blocks, kOpenBlocks); block < blocks; ++block) {
      if (free_[block] < labels_.size()) continue;
      for (std::size_t base = block * kBlock; base < (block + 1) * kBlock; ++base) {
        if (is_base_[base]) continue;
        const auto fits = [&](unsigned char label) { return !taken(base ^ label); };
        if (std::all_of(labels_.begin(), labels_.end(), fits)) return static_cast<std::uint32_t>(base);
      }
    }
    add_block();
    return static_cast<std::uint32_t>(units_.size() - kBlock);
  }

  std::uint32_t place(Range range) {
    if (keys_[range.begin].first.size() == range.depth) ++range.begin;  // the node's own key
    labels_.clear();
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto label = static_cast<unsigned char>(keys_[i].first[range.depth]);
      if (labels_.empty() || labels_.back() != label) labels_.push_back(label);
    }
    if (labels_.empty()) return 0;
    const std::uint32_t base = find_base();
    is_base_[base] = true;
    if (range.unit != kNoUnit) units_[range.unit].link |= base << kLabelBits;
    for (std::size_t i = range.begin; i < range.end;) {
      const char byte = keys_[i].first[range.depth];
      std::size_t end = i + 1;
      while (end < range.end && keys_[end].first[range.depth] == byte) ++end;
      const std::size_t unit = base ^ static_cast<unsigned char>(byte);
      units_[unit].link = kTaken | static_cast<unsigned char>(byte);
      if (keys_[i].first.size() == range.depth + 1) units_[unit].value = keys_[i].second;
      --free_[unit / kBlock];
      open_.push_back({i, end, range.depth + 1, unit});
      i = end;
    }
    return base;
  }

  std::vector<std::pair<std::string_view, std::int32_t>>& keys_;
  std::vector<Unit>& units_;
  std::vector<bool> is_base_;      // per unit: whether it is the base of a node
  std::vector<std::size_t> free_;  // per block
  std::vector<Range> open_;
  std::vector<unsigned char> labels_;
};

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> keys) {
  if (!keys.empty()) root_ = Builder(keys, units_).build();
}

}  // namespace heed
