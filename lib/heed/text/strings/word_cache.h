#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// What one thread remembers of words of at most `longest` bytes: two places for each hash, of which the one used last
/// stays. Of fixed size.
template <class Value, std::size_t longest>
class WordCache {
 public:
  static constexpr std::size_t kLongestWord = longest;

  struct alignas(64) Entry {
    std::uint8_t length = 0;
    std::uint8_t used_last = 0;  ///< of a pair's first entry: which of the two
    char bytes[longest];
    Value value = {};

    bool is(std::string_view word) const {
      return length == word.size() && std::memcmp(bytes, word.data(), word.size()) == 0;
    }
  };

  /// Tells the processor that find() will ask for a hash soon: the places lie anywhere in the memory.
  void expect(std::uint64_t hash) const {
    const auto* const pair = reinterpret_cast<const char*>(entries_.data() + first_of(hash));
    for (std::size_t line = 0; line < 2 * sizeof(Entry); line += 64) __builtin_prefetch(pair + line);
  }

  /// nullptr where it is not there. Lives until the next call.
  const Entry* find(std::string_view word, std::uint64_t hash) {
    Entry* const pair = pair_of(hash);
    for (std::uint8_t i = 0; i < 2; ++i) {
      if (!pair[i].is(word)) continue;
      if (pair->used_last != i) pair->used_last = i;
      return &pair[i];
    }
    return nullptr;
  }

  /// The place for the value of a word that find() does not know, in the stead of another word.
  Value& add(std::string_view word, std::uint64_t hash) {
    Entry* const pair = pair_of(hash);
    pair->used_last ^= 1;
    Entry& entry = pair[pair->used_last];
    entry.length = static_cast<std::uint8_t>(word.copy(entry.bytes, longest));
    return entry.value;
  }

 private:
  static constexpr std::size_t kPairs = 16384;

  static std::size_t first_of(std::uint64_t hash) { return 2 * (hash & (kPairs - 1)); }
  Entry* pair_of(std::uint64_t hash) { return &entries_[first_of(hash)]; }

  std::vector<Entry> entries_ = std::vector<Entry>(2 * kPairs);
};

/// The calling thread's cache for one owner, told from others by a number of its own. A thread keeps those of the few
/// owners it has worked for last.
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
