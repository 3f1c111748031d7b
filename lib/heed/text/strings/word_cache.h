#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// A cache of fixed size, for one thread, that stores a Value for each of the words used last. Words of more
/// than `longest` bytes are not stored. The hash of a word gives the two entries in which the word may be stored. A new
/// word replaces the word in that one of the two entries that was not used last.
template <class Value, std::size_t longest>
class WordCache {
 public:
  static constexpr std::size_t kLongestWord = longest;

  struct alignas(64) Entry {
    std::uint8_t length = 0;  ///< the number of bytes of the word in `bytes`; 0 in an empty entry
    /// Two neighbouring entries form a pair, in which words with the same hash are stored. In the first entry of a pair
    /// `used_last` is the index (0 or 1) of that entry of the pair that was used last.
    std::uint8_t used_last = 0;
    char bytes[longest];
    Value value = {};

    /// Returns whether this entry stores the word `word`.
    bool is(std::string_view word) const {
      return length == word.size() && std::memcmp(bytes, word.data(), word.size()) == 0;
    }
  };

  /// Prefetches the two cache entries for words with this hash into the processor's cache, so that find() is faster.
  /// Call expect() some time before find().
  void expect(std::uint64_t hash) const {
    const auto* const pair = reinterpret_cast<const char*>(entries_.data() + first_of(hash));
    for (std::size_t line = 0; line < 2 * sizeof(Entry); line += 64) __builtin_prefetch(pair + line);
  }

  /// Returns the entry of a word, or nullptr if the cache does not hold the word. `hash` is the word's hash. The entry
  /// is valid until the next call of add().
  const Entry* find(std::string_view word, std::uint64_t hash) {
    Entry* const pair = pair_of(hash);
    for (std::uint8_t i = 0; i < 2; ++i) {
      if (!pair[i].is(word)) continue;
      if (pair->used_last != i) pair->used_last = i;
      return &pair[i];
    }
    return nullptr;
  }

  /// Puts a word that find() has not found into the cache, in place of another word. Returns the word's value, which
  /// the caller sets.
  Value& add(std::string_view word, std::uint64_t hash) {
    Entry* const pair = pair_of(hash);
    pair->used_last ^= 1;
    Entry& entry = pair[pair->used_last];
    entry.length = static_cast<std::uint8_t>(word.copy(entry.bytes, longest));
    return entry.value;
  }

 private:
  // The cache has 16,384 pairs of entries. The lowest bits of a word's hash say in which pair the word may be stored.
  static constexpr std::size_t kPairs = 16384;

  /// Returns the index in entries_ of the first of the two entries for words with this hash.
  static std::size_t first_of(std::uint64_t hash) { return 2 * (hash & (kPairs - 1)); }
  Entry* pair_of(std::uint64_t hash) { return &entries_[first_of(hash)]; }

  std::vector<Entry> entries_ = std::vector<Entry>(2 * kPairs);
};

/// Returns the cache that the calling thread has for one owner, for example for one BpeEncoder object. `owner` is a
/// number that no other owner has. Each thread keeps at most four caches: a new cache replaces a cache that was not
/// used recently.
template <class Cache>
Cache& cache_of_thread(std::uint64_t owner) {
  constexpr std::size_t kCaches = 4;
  struct Owned {
    std::uint64_t owner;
    std::unique_ptr<Cache> cache;
  };
  thread_local std::vector<Owned> caches;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    if (caches[i].owner != owner) continue;
    if (i > 0) std::swap(caches[i], caches[i - 1]);
    return *caches[i > 0 ? i - 1 : 0].cache;
  }
  if (caches.size() == kCaches) caches.pop_back();
  return *caches.emplace_back(Owned{owner, std::make_unique<Cache>()}).cache;
}

}  // namespace heed
