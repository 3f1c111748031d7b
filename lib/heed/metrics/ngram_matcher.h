#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A hash table that maps keys to small ids and that can be emptied quickly. Each entry stores the number of the
/// generation in which it was added, and clear() begins a new generation, so that all older entries count as empty. The
/// table uses open addressing with linear probing and is at most half full.
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

  /// Returns the entry with the key `key`, or nullptr when the table has no such entry.
  template <class Key>
  const Entry* find(const Key& key) const {
    for (std::size_t at = key.hash() & mask();; at = (at + 1) & mask()) {
      const Entry& entry = entries_[at];
      if (entry.generation != generation_) return nullptr;
      if (entry.key == key) return &entry;
    }
  }

  /// Returns the id of `key`. If the table lacks `key`, adds it with the id `next_id` and increases `next_id` by 1.
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

/// A token with the hash of its text, for use as a key of a hash table. Two different tokens of the same length of at
/// most kShort bytes always have different hashes, so that the texts of such tokens need not be compared.
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

/// An entry of a GenerationTable: the key, the key's id, and the number of the generation (the time between two calls
/// of clear()) in which the entry was added.
template <class Key>
struct GenerationEntry {
  Key key;
  std::uint32_t generation = 0, id = 0;
};

/// Gives each different token an id: 0, 1, 2 ... in the order in which the tokens are first seen. Stores copies of the
/// tokens' texts.
class TokenNumbers {
 public:
  /// Forgets all tokens, so that the next new token gets the id 0.
  void clear();
  /// Sets `numbers` to the ids of `tokens`, and adds tokens that have not been seen before.
  void number(std::span<const std::string_view> tokens, std::vector<std::uint32_t>& numbers);

 private:
  GenerationTable<GenerationEntry<TokenKey>> table_;
  std::uint32_t count_ = 0;
  // Copies of the tokens' texts. Only the first `count_` strings are in use; the others are kept so that their memory
  // can be used again.
  std::deque<std::string> kept_;
};

/// Counts the n-grams that a hypothesis shares with its references, exactly and without storing the text of the
/// n-grams. Each different token gets an id, and each different n-gram gets an id too, which is looked up by a pair of
/// ids: the id of the n-gram's first n-1 tokens and the id of its last token. Example, for the reference "a b a b":
///
///     tokens     a: 0, b: 1
///     bigrams    a b: (0, 1) -> 2    b a: (1, 0) -> 3
///     trigrams   a b a: (2, 0) -> 4  b a b: (3, 1) -> 5
class NgramMatcher {
 public:
  explicit NgramMatcher(int max_order) : max_order_(max_order) {}

  /// Forgets the references, but keeps allocated memory for the next references.
  void clear();
  /// Adds one reference, given by its tokens. If several references contain the same n-gram, the largest of its counts
  /// in one reference is used. The texts of the tokens must exist until clear() is called.
  void add_reference(std::span<const std::string_view> tokens);
  /// Counts the n-grams of the hypothesis `tokens` that are in the references, and adds the count for each n = 1 ...
  /// max_order to `matches[n - 1]`. An n-gram counts at most as often as the references contain it. match() may be
  /// called for several hypotheses.
  void match(std::span<const std::string_view> tokens, std::span<std::int64_t> matches);

 private:
  struct Pair {
    std::uint64_t value = 0;
    std::uint64_t hash() const;
    bool operator==(const Pair& other) const = default;
  };
  /// The counts of one n-gram. `count` is the largest number of its occurrences in one reference. `seen` is the number
  /// of its occurrences so far in the sequence (reference or hypothesis) that has the number `sequence`.
  struct Node {
    std::uint32_t count = 0, seen = 0, sequence = 0;
  };

  static Pair pair_key(std::uint32_t prefix, std::uint32_t token);
  /// Makes the array nodes_ large enough for `count` n-grams more.
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
