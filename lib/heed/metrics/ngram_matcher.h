#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A map from keys to small ids that is emptied in no time: every entry carries the generation it belongs to.
/// Open addressing, linear probing, at most half full.
template <class Entry>
class GenerationTable {
 public:
  GenerationTable() : entries_(256) {}

  void clear() {
    used_ = 0;
    if (++generation_ == 0) {
      entries_.assign(entries_.size(), Entry{});
      generation_ = 1;
    }
  }

  /// The entry equal to `key`, or nullptr.
  template <class Key>
  const Entry* find(const Key& key) const {
    for (std::size_t at = key.hash() & mask();; at = (at + 1) & mask()) {
      const Entry& entry = entries_[at];
      if (entry.generation != generation_) return nullptr;
      if (entry.key == key) return &entry;
    }
  }

  /// The id of `key`; `next_id` (then counted up) where it is new.
  template <class Key>
  std::uint32_t intern(const Key& key, std::uint32_t& next_id) {
    if (2 * (used_ + 1) > entries_.size()) grow();
    std::size_t at = key.hash() & mask();
    for (; entries_[at].generation == generation_; at = (at + 1) & mask())
      if (entries_[at].key == key) return entries_[at].id;
    entries_[at] = {key, generation_, next_id};
    ++used_;
    return next_id++;
  }

 private:
  std::size_t mask() const { return entries_.size() - 1; }

  void grow() {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.generation != generation_) continue;
      std::size_t at = entry.key.hash() & mask();
      while (entries_[at].generation == generation_) at = (at + 1) & mask();
      entries_[at] = entry;
    }
  }

  std::vector<Entry> entries_;
  std::size_t used_ = 0;
  std::uint32_t generation_ = 1;
};

/// The bytes of a token with their hash, as a key of a GenerationTable. Short tokens of one length have different
/// hashes.
struct TokenKey {
  static constexpr std::size_t kShort = 8;

  TokenKey() = default;
  explicit TokenKey(std::string_view token);

  std::uint64_t hash() const { return hashed; }
  bool operator==(const TokenKey& other) const {
    return hashed == other.hashed && text.size() == other.text.size() && (text.size() <= kShort || text == other.text);
  }

  std::string_view text;
  std::uint64_t hashed = 0;
};

/// What a GenerationTable holds.
template <class Key>
struct GenerationEntry {
  Key key;
  std::uint32_t generation = 0, id = 0;
};

/// Gives equal tokens equal numbers, 0, 1, 2 ... in the order they are first seen. Keeps a copy of the text.
class TokenNumbers {
 public:
  void clear();
  /// `numbers` becomes the tokens' numbers.
  void number(std::span<const std::string_view> tokens, std::vector<std::uint32_t>& numbers);

 private:
  GenerationTable<GenerationEntry<TokenKey>> table_;
  std::uint32_t count_ = 0;
  std::deque<std::string> kept_;  // the first `count_` of them
};

/// Counts the n-grams two sequences of tokens share, exactly: tokens become ids by comparing their text, and an n-gram
/// is the pair (its first n-1 tokens' id, its last token's id). No n-gram is ever spelled out.
class NgramMatcher {
 public:
  explicit NgramMatcher(int max_order) : max_order_(max_order) {}

  /// Forgets the references (keeps the memory).
  void clear();
  /// Adds one reference; an n-gram counts as often as in the reference that has it most. The tokens' text must live
  /// until clear().
  void add_reference(std::span<const std::string_view> tokens);
  /// Adds to `matches[n - 1]` (n = 1 ... max_order) the number of n-grams of `tokens` found in the references, each
  /// at most as often as it counts there. May be asked for several hypotheses.
  void match(std::span<const std::string_view> tokens, std::span<std::int64_t> matches);

 private:
  struct Pair {
    std::uint64_t value = 0;
    std::uint64_t hash() const;
    bool operator==(const Pair& other) const = default;
  };
  /// What is known of one n-gram: its count in the references, and how often the present sequence (`sequence`) has it.
  struct Node {
    std::uint32_t count = 0, seen = 0, sequence = 0;
  };

  static Pair pair_key(std::uint32_t prefix, std::uint32_t token);
  /// For that many new n-grams.
  void make_room(std::size_t count) {
    if (nodes_.size() < node_count_ + count) nodes_.resize(node_count_ + count);
  }
  void count_in_reference(std::uint32_t id) {
    Node& node = nodes_[id];
    if (node.sequence != sequence_) node = {node.count, 0, sequence_};
    node.count = std::max(node.count, ++node.seen);
  }
  std::int64_t count_in_hypothesis(std::uint32_t id) {
    Node& node = nodes_[id];
    if (node.sequence != sequence_) node = {node.count, 0, sequence_};
    return ++node.seen <= node.count ? 1 : 0;
  }
  void add_longer();
  void match_longer(std::span<std::int64_t> matches);

  int max_order_;
  GenerationTable<GenerationEntry<TokenKey>> tokens_;
  GenerationTable<GenerationEntry<Pair>> pairs_;
  std::vector<Node> nodes_;
  std::uint32_t node_count_ = 0, sequence_ = 0;
  std::vector<std::uint32_t> token_ids_, prefix_ids_;
};

}  // namespace heed
