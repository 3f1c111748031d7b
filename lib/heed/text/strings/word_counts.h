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

// Counting the words of a text, with an example.
//
// The classes of this file count how often each word occurs in a text that may be larger than memory. The text
// `the cat the dog` has the counts the 2, cat 1, dog 1, in the order of first occurrence. A large text has millions of
// different words, so that each word should use little memory, and a word of the text should be found quickly.
//
// WordTable stores each different word once, in a record: the count (4 bytes), the word's length (1 byte) and the word.
// Records follow each other in chunks of memory; each record starts at a multiple of 4 bytes. The place of a record is
// its offset in units of 4 bytes. A hash table leads from a word to a place. After `the cat the`:
//
//     place    0                    2
//     record   2 | 3 | t h e        1 | 3 | c a t        (count | length | word: 4 + 1 + 3 = 8 bytes = 2 units)
//     slots    [hash of cat, place 2]  [empty]  [hash of the, place 0]  ...
//
// Adding `dog` writes the record 1 | 3 | d o g at place 4, and fills one more slot of 8 bytes. Adding `the` again finds
// place 0 by the hash table, and changes only the count in the record.
//
// WordCounts is the result: all words in the order of first occurrence, as a list of places.
//
// WordCounter fills a WordCounts on several threads. Each word belongs to a share by its hash; each share has one
// thread and one WordTable, so that threads never wait for each other at a table. Two threads count in two steps:
//   1. Each thread splits a part of the text into words, and puts each word into a list for the word's share:
//          thread 0 splits `the cat`:  share 0: cat    share 1: the
//          thread 1 splits `the dog`:  share 0: dog    share 1: the
//   2. Each thread counts the words of one share, from the lists of all parts:
//          thread 0 counts share 0: cat 1, dog 1       thread 1 counts share 1: the 2
// A word that is new in a share is noted with its position in the text. At the end the new words of all shares are put
// into the order of these positions: the, cat, dog.
//
// Glossary:
//   record   count, length and bytes of one word.
//   place    where a record is stored, in units of 4 bytes from the start of the table's memory.
//   slot     an entry of the hash table: a hash and a place.
//   piece    a section of the text as the caller gives it to WordCounter::add(); it ends at the end of a line.
//   part     the pieces that one thread splits into words.
//   share    the words that one thread counts. The hash of a word says to which share the word belongs.

/// The different words of a text with their counts. A word is stored as a record in memory that never moves, and is
/// found by a hash table. The place of a word's record stands for the word.
class WordTable {
 public:
  using Place = std::uint32_t;
  static constexpr Place kNoPlace = 0xFFFFFFFFu;
  /// add() and hash_of() may read this many bytes from the start of a word, even if the word is shorter.
  static constexpr std::size_t kReadAhead = 16;

  /// Returns the hash of a word, for add().
  static std::uint32_t hash_of(const char* word, std::size_t size);
  /// Adds `count` to the count of a word, and stores the word if it is new. Returns the word's place, and whether the
  /// word is new. Throws Error when the table is full.
  std::pair<Place, bool> add(const char* word, std::size_t size, std::uint32_t hash, std::int64_t count);
  /// Adds `count` to the count of the word at a place.
  void add_to(Place place, std::int64_t count);

  // These two functions load memory into the processor's cache before add() needs it: prefetch_slot() a word's first
  // slot, and prefetch_word() the record of that slot. Call prefetch_slot() some time before prefetch_word().
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

  /// Frees the hash table's memory. The words can still be read, but no word can be added.
  void close() {
    slots_ = Pages();
    slot_count_ = 0;
  }
  /// Frees the memory of the words stored before `place`, in whole chunks. These words must not be read any more.
  void forget_before(Place place);

 private:
  static constexpr std::size_t kUnit = 4;                      // the unit of a place, in bytes
  static constexpr std::size_t kChunk = std::size_t{1} << 18;  // the size of a chunk of memory for records, in bytes
  static constexpr std::size_t kUnitsOfChunk = kChunk / kUnit;
  static constexpr std::uint32_t kLargeCount = 0xFFFFFFFFu;  // stored as a count: the real count is in large_counts_
  static constexpr std::uint8_t kLongWord = 0xFF;            // stored as a length: the next four bytes hold the length

  /// An entry of the hash table. All bytes of an empty slot are zero, so that new memory from the system holds empty
  /// slots.
  struct Slot {
    std::uint32_t inverse = 0;  // ~place, because place 0 exists and must differ from an empty slot
    std::uint32_t hash = 0;
    bool empty() const { return inverse == 0; }
    Place place() const { return ~inverse; }
  };
  /// The memory of one chunk, or of several chunks for a word that is longer than a chunk.
  struct Memory {
    Pages pages;
    std::size_t chunks;  // the number of all chunks in this Memory and in those before it
  };

  /// Returns the first byte of the record at a place.
  char* at(Place place) const { return chunks_[place / kUnitsOfChunk] + place % kUnitsOfChunk * kUnit; }
  /// Returns the index of the slot at which the search for a hash begins. The slots are in the order of the hashes, so
  /// that grow() writes the larger table from front to back.
  std::size_t first_slot(std::uint32_t hash) const { return hash * std::uint64_t{slot_count_} >> 32; }
  std::size_t slot_after(std::size_t slot) const { return slot + 1 == slot_count_ ? 0 : slot + 1; }
  Slot& slot(std::size_t number) const { return reinterpret_cast<Slot*>(slots_.data())[number]; }
  /// Returns whether the record at `place` holds the given word.
  bool is(Place place, const char* word, std::size_t size) const;
  /// Stores a record with count 0 for a new word, and returns the place.
  Place store(const char* word, std::size_t size);
  /// Makes the hash table a quarter larger.
  void grow();

  std::vector<Memory> memory_;                            // the memory of all records
  std::vector<char*> chunks_;                             // the first byte of each chunk
  std::size_t used_ = kChunk;                             // how many bytes of the last chunk are in use
  std::size_t forgotten_ = 0;                             // how many elements of memory_ forget_before() has freed
  std::size_t words_ = 0;                                 // number of different words
  Pages slots_;                                           // the memory of the hash table, an array of Slot
  std::size_t slot_count_ = 0;                            // at most five sixths of the slots are used
  std::unordered_map<Place, std::int64_t> large_counts_;  // the counts that do not fit in a record
};

/// An array that grows without moving its elements. The memory of the first elements can be freed while the last
/// elements are still in use.
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
  /// Frees the memory of elements before `index`, which must not be used any more. Must be called with each index in
  /// turn.
  void forget_before(std::size_t index) {
    if (index > 0 && index % kChunk == 0) chunks_[index / kChunk - 1] = Pages();
  }

 private:
  static constexpr std::size_t kChunk = 1 << 16;  // elements of one chunk
  T& at(std::size_t index) const { return reinterpret_cast<T*>(chunks_[index / kChunk].data())[index % kChunk]; }

  std::vector<Pages> chunks_;
  std::size_t size_ = 0;
};

/// The different words of a text with their counts, in the order of first occurrence.
class WordCounts {
 public:
  using Place = WordTable::Place;

  /// Adds `count` to the count of a word, and stores the word if it is new. Returns the place of the word's record.
  Place add(std::string_view word, std::int64_t count = 1);
  /// Adds `count` to the count of the word at a place that add() has returned.
  void add_to(Place place, std::int64_t count);

  /// Returns the number of different words.
  std::size_t size() const { return places_.size(); }
  /// Returns a word by its index in the order of first occurrence.
  std::string_view word(std::size_t index) const { return table(index).word(places_[index]); }
  std::int64_t count(std::size_t index) const { return table(index).count(places_[index]); }
  /// Returns the sum of all counts.
  std::int64_t total() const { return total_; }

  /// Returns the indices of all words by falling count, and words of equal count in the order of first occurrence, as
  /// subword-nmt's get-vocab lists words.
  std::vector<std::size_t> by_count() const;

  /// Calls take(word, count) for each word in the order of first occurrence, and frees the words' memory on the way.
  /// The WordCounts is empty then.
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
  /// Returns the table that holds the word of an index.
  WordTable& table(std::size_t index) { return tables_[shares_.size() == 0 ? 0 : shares_[index]]; }
  const WordTable& table(std::size_t index) const { return tables_[shares_.size() == 0 ? 0 : shares_[index]]; }

  std::vector<WordTable> tables_ = std::vector<WordTable>(1);  // one for each share of a WordCounter
  PagedArray<Place> places_;                                   // for each word its place in its table
  PagedArray<std::uint8_t> shares_;  // for each word its table; empty if only one table exists
  std::int64_t total_ = 0;
};

/// Counts the words of a long text on several threads. Each thread first splits some pieces of the text into words, and
/// then counts the words of its own share, which is given by the words' hashes. So each word of the text is hashed
/// once, and each different word is stored in one table only.
class WordCounter {
 public:
  explicit WordCounter(int threads);

  /// Counts the words of the next pieces of the text. Words are separated by spaces and LFs. No line continues from one
  /// piece to the next. `run` calls a function on all threads.
  void add(const std::vector<std::string_view>& pieces, const RunOnThreads& run);

  /// Returns the number of lines so far that contain a word.
  std::int64_t sentences() const;
  /// Returns all words counted so far, in the order of first occurrence. The WordCounter must not be used again.
  WordCounts take();

 private:
  /// An occurrence of a word in a part.
  struct Word {
    const char* text;
    std::uint32_t size, hash, position;  // position: how many words of the part come before
  };
  /// The pieces that one thread splits, as lists of words.
  struct alignas(64) Part {
    std::vector<std::vector<Word>> words;  // for each share its words in this part
    std::deque<std::string> ends;          // copies of the pieces' last bytes, with zeros behind them (see split())
    std::uint32_t position = 0;            // number of words split so far
    std::int64_t sentences = 0, total = 0;
  };
  /// A word that occurs for the first time in its share: the position of the occurrence, and the place of the record.
  struct NewWord {
    std::size_t part;
    std::uint32_t position;
    WordTable::Place place;
  };

  void split(std::string_view piece, Part& part);
  void count(std::size_t share);
  void list_new_words();

  std::vector<Part> parts_;                      // one for each thread
  std::vector<std::vector<NewWord>> new_words_;  // for each share its new words, in the order of their occurrence
  WordCounts counts_;
};

}  // namespace heed
