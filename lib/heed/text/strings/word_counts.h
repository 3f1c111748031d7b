#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heed/base/pages.h"
#include "heed/base/threads.h"

namespace heed {

/// Different words with their counts: records in memory that never moves, found by a hash table. A word is named by the
/// place of its record.
class WordTable {
 public:
  using Place = std::uint32_t;
  static constexpr Place kNoPlace = 0xFFFFFFFFu;
  /// add() may read so many bytes from the beginning of a short word.
  static constexpr std::size_t kReadAhead = 16;

  static std::uint32_t hash_of(const char* word, std::size_t size);
  /// The place of a word, and whether it is new. Throws Error when the table is full.
  std::pair<Place, bool> add(const char* word, std::size_t size, std::uint32_t hash, std::int64_t count);
  void add_to(Place place, std::int64_t count);

  // Bring what add() will look at into the cache: the second some time after the first.
  void prefetch_slot(std::uint32_t hash) const {
    if (slot_count_ > 0) __builtin_prefetch(&slot(first_slot(hash)));
  }
  void prefetch_word(std::uint32_t hash) const {
    if (slot_count_ == 0) return;
    const Slot& first = slot(first_slot(hash));
    if (!first.empty()) __builtin_prefetch(at(first.place()), 1);
  }

  std::string_view word(Place place) const;
  std::int64_t count(Place place) const;

  /// Gives the hash table back: no word can be added any more.
  void close() {
    slots_ = Pages();
    slot_count_ = 0;
  }
  /// Gives the memory of the words before this one back, as far as whole chunks go.
  void forget_before(Place place);

 private:
  static constexpr std::size_t kUnit = 4;                      // bytes; places count these
  static constexpr std::size_t kChunk = std::size_t{1} << 18;  // bytes
  static constexpr std::size_t kUnitsOfChunk = kChunk / kUnit;
  static constexpr std::uint32_t kLargeCount = 0xFFFFFFFFu;  // the count is in large_counts_
  static constexpr std::uint8_t kLongWord = 0xFF;            // four bytes with the length follow

  /// Zeros where it is empty, as new pages are.
  struct Slot {
    std::uint32_t inverse = 0;  // ~place
    std::uint32_t hash = 0;
    bool empty() const { return inverse == 0; }
    Place place() const { return ~inverse; }
  };
  struct Memory {
    Pages pages;
    std::size_t chunks;  // up to its end, those before included
  };

  char* at(Place place) const { return chunks_[place / kUnitsOfChunk] + place % kUnitsOfChunk * kUnit; }
  /// Where the search for a word begins: in the order of hashes, so that a larger table is written from front to back.
  std::size_t first_slot(std::uint32_t hash) const { return hash * std::uint64_t{slot_count_} >> 32; }
  std::size_t slot_after(std::size_t slot) const { return slot + 1 == slot_count_ ? 0 : slot + 1; }
  Slot& slot(std::size_t number) const { return reinterpret_cast<Slot*>(slots_.data())[number]; }
  bool is(Place place, const char* word, std::size_t size) const;
  Place store(const char* word, std::size_t size);
  void grow();

  std::vector<Memory> memory_;  // one for each chunk, or for several with a long word
  std::vector<char*> chunks_;
  std::size_t used_ = kChunk;  // bytes of the last chunk
  std::size_t forgotten_ = 0;  // of memory_
  std::size_t words_ = 0;
  Pages slots_;
  std::size_t slot_count_ = 0;  // at most 5 of 6 taken
  std::unordered_map<Place, std::int64_t> large_counts_;
};

/// An array that grows without moving, and gives the memory of its front back to the system while its rear is in use.
template <class T>
class PagedArray {
 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t index) { return at(index); }
  const T& operator[](std::size_t index) const { return at(index); }
  void push_back(T value) {
    if (size_ % kChunk == 0) chunks_.emplace_back(kChunk * sizeof(T));
    at(size_++) = value;
  }
  /// The elements before this one must not be used any more.
  void forget_before(std::size_t index) {
    if (index > 0 && index % kChunk == 0) chunks_[index / kChunk - 1] = Pages();
  }

 private:
  static constexpr std::size_t kChunk = 1 << 16;
  T& at(std::size_t index) const { return reinterpret_cast<T*>(chunks_[index / kChunk].data())[index % kChunk]; }

  std::vector<Pages> chunks_;
  std::size_t size_ = 0;
};

/// How often each word occurs, in the order of first occurrence.
class WordCounts {
 public:
  using Place = WordTable::Place;

  /// Returns where the word is.
  Place add(std::string_view word, std::int64_t count = 1);
  /// A word that add() has put there.
  void add_to(Place place, std::int64_t count);

  std::size_t size() const { return places_.size(); }
  std::string_view word(std::size_t index) const { return table(index).word(places_[index]); }
  std::int64_t count(std::size_t index) const { return table(index).count(places_[index]); }
  std::int64_t total() const { return total_; }

  /// Indices by falling count; equal counts in the order of first occurrence (as get-vocab lists them).
  std::vector<std::size_t> by_count() const;

  /// Takes all words out: calls take(word, count) for each in turn, and gives their memory back on the way.
  template <class Take>
  void consume(Take&& take) {
    for (WordTable& each : tables_) each.close();
    for (std::size_t i = 0; i < size(); ++i) {
      table(i).forget_before(places_[i]);
      places_.forget_before(i);
      take(word(i), count(i));
    }
    *this = {};
  }

 private:
  friend class WordCounter;
  WordTable& table(std::size_t index) { return tables_[shares_.size() == 0 ? 0 : shares_[index]]; }
  const WordTable& table(std::size_t index) const { return tables_[shares_.size() == 0 ? 0 : shares_[index]]; }

  std::vector<WordTable> tables_ = std::vector<WordTable>(1);
  PagedArray<Place> places_;         // of each word in its table
  PagedArray<std::uint8_t> shares_;  // its table, where there are several
  std::int64_t total_ = 0;
};

/// Counts the words of a long text on several threads: each splits a part of a piece of it, then counts its share of
/// the words, by their hashes, so that a word is hashed once and stored once.
class WordCounter {
 public:
  explicit WordCounter(int threads);

  /// Counts the words of the next pieces of the text, between spaces and LFs. A piece ends with its last line.
  void add(const std::vector<std::string_view>& pieces, const RunOnThreads& run);

  /// Lines with words, so far.
  std::int64_t sentences() const;
  /// All words in the order of first occurrence. Leaves nothing behind.
  WordCounts take();

 private:
  struct Word {
    const char* text;
    std::uint32_t size, hash, position;  // position: in the part
  };
  /// What one thread splits.
  struct alignas(64) Part {
    std::vector<std::vector<Word>> words;  // per share
    std::deque<std::string> ends;          // of the pieces, with room behind them
    std::uint32_t position = 0;
    std::int64_t sentences = 0, total = 0;
  };
  /// A word that a share has not seen before.
  struct NewWord {
    std::size_t part;
    std::uint32_t position;
    WordTable::Place place;
  };

  void split(std::string_view piece, Part& part);
  void count(std::size_t share);
  void list_new_words();

  std::vector<Part> parts_;
  std::vector<std::vector<NewWord>> new_words_;  // per share
  WordCounts counts_;
};

}  // namespace heed
