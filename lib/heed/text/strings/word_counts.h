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
/// found by a hash table. The functions below identify a word by the place in this memory where the record is stored.
class WordTable {
 public:
  using Place = std::uint32_t;
  static constexpr Place kNoPlace = 0xFFFFFFFFu;
  /// add() and hash_of() may read this many bytes from the start of a word, even if the word is shorter.
  static constexpr std::size_t kReadAhead = 16;

  /// Returns the hash of the word with the `size` bytes from `word` on. The caller passes the hash to add().
  static std::uint32_t hash_of(const char* word, std::size_t size);
  /// Adds `count` to the count of a word, and stores the word if the table does not hold the word. `hash` is
  /// hash_of(word, size). Returns the place where the word's record is stored, and whether the word is new. Throws
  /// Error when the table is full.
  std::pair<Place, bool> add(const char* word, std::size_t size, std::uint32_t hash, std::int64_t count);
  /// Adds `count` to the count of the word whose record is stored at `place`, which add() has returned.
  void add_to(Place place, std::int64_t count);

  // prefetch_slot() and prefetch_word() load memory into the processor's cache before add() reads the memory.
  // prefetch_slot() loads the slot of the hash table at which the search for a word begins, and prefetch_word() loads
  // the record to which this slot refers. Call prefetch_slot() some time before prefetch_word().
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
  /// Frees the chunks of memory that hold only words stored before the word at `place`. No word stored before may be
  /// read after this call.
  void forget_before(Place place);

 private:
  static constexpr std::size_t kUnit = 4;  // a place (where a record is stored) is counted in units of 4 bytes
  static constexpr std::size_t kChunk = std::size_t{1} << 18;  // the records of words are stored in chunks of 256 KiB
  static constexpr std::size_t kUnitsOfChunk = kChunk / kUnit;
  // If the four bytes for the count in a word's record hold this value, the word's real count is in large_counts_.
  static constexpr std::uint32_t kLargeCount = 0xFFFFFFFFu;
  // If the byte for the length in a word's record holds this value, the next four bytes hold the word's real length.
  static constexpr std::uint8_t kLongWord = 0xFF;

  /// An entry of the hash table: the hash of a word, and the place where the word's record is stored. All bytes of an
  /// empty slot are zero. So new memory from the operating system, which is filled with zeros, holds empty slots.
  struct Slot {
    std::uint32_t inverse = 0;  // the place with all bits inverted, so that the place 0 differs from an empty slot
    std::uint32_t hash = 0;
    bool empty() const { return inverse == 0; }
    Place place() const { return ~inverse; }
  };
  /// A block of memory for the records of words: one chunk, or several chunks for a word that is longer than a chunk.
  struct Memory {
    Pages pages;
    std::size_t chunks;  // the number of chunks in this Memory and in all earlier elements of memory_ together
  };

  /// Returns a pointer to the first byte of the word record that is stored at `place`.
  char* at(Place place) const { return chunks_[place / kUnitsOfChunk] + place % kUnitsOfChunk * kUnit; }
  /// Returns the index of the slot at which the search for a word with this hash begins. A greater hash begins at the
  /// same slot or a later slot, so that grow() writes the larger hash table from front to back.
  std::size_t first_slot(std::uint32_t hash) const { return hash * std::uint64_t{slot_count_} >> 32; }
  std::size_t slot_after(std::size_t slot) const { return slot + 1 == slot_count_ ? 0 : slot + 1; }
  Slot& slot(std::size_t number) const { return reinterpret_cast<Slot*>(slots_.data())[number]; }
  /// Returns whether the record at `place` holds the word with the `size` bytes from `word` on.
  bool is(Place place, const char* word, std::size_t size) const;
  /// Stores a record with the count 0 for a new word. Returns the place where the record is stored.
  Place store(const char* word, std::size_t size);
  /// Makes the hash table a quarter larger, and moves all slots to the larger table.
  void grow();

  std::vector<Memory> memory_;  // the memory that holds the records of all words
  std::vector<char*> chunks_;   // for each chunk of memory_ the address of the chunk's first byte
  std::size_t used_ = kChunk;   // how many bytes of the last chunk hold records
  std::size_t forgotten_ = 0;   // how many elements of memory_ forget_before() has freed
  std::size_t words_ = 0;       // number of different words in the table
  Pages slots_;                 // the memory of the hash table, an array of Slot
  std::size_t slot_count_ = 0;  // number of slots of the hash table; at most five sixths of the slots are used
  // The counts that are too large for the four bytes in a word's record, by the place of the record.
  std::unordered_map<Place, std::int64_t> large_counts_;
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
  /// Frees memory of elements with an index below `index`; these elements must not be used any more. The caller must
  /// call forget_before() with every index 0, 1, 2, ... in this order.
  void forget_before(std::size_t index) {
    if (index > 0 && index % kChunk == 0) chunks_[index / kChunk - 1] = Pages();
  }

 private:
  static constexpr std::size_t kChunk = 1 << 16;  // the number of elements in one chunk of memory
  T& at(std::size_t index) const { return reinterpret_cast<T*>(chunks_[index / kChunk].data())[index % kChunk]; }

  std::vector<Pages> chunks_;
  std::size_t size_ = 0;
};

/// The different words of a text with their counts, in the order of first occurrence.
class WordCounts {
 public:
  using Place = WordTable::Place;

  /// Adds `count` to the count of a word, and stores a word that is new. Returns the place where the word's record is
  /// stored, for add_to().
  Place add(std::string_view word, std::int64_t count = 1);
  /// Adds `count` to the count of the word at a place that add() has returned.
  void add_to(Place place, std::int64_t count);

  /// Returns the number of different words.
  std::size_t size() const { return places_.size(); }
  /// Returns the word with the index `index`. The words have the indices 0, 1, 2, ... in the order in which they first
  /// occur in the text.
  std::string_view word(std::size_t index) const { return table(index).word(places_[index]); }
  std::int64_t count(std::size_t index) const { return table(index).count(places_[index]); }
  /// Returns the sum of the counts of all words, that is, how many words the text has.
  std::int64_t total() const { return total_; }

  /// Returns the indices of all words by falling count, and words of equal count in the order of first occurrence, as
  /// subword-nmt's get-vocab lists words.
  std::vector<std::size_t> by_count() const;

  /// Calls take(word, count) for each word in the order of first occurrence, and frees the memory of the words that
  /// have been taken. Afterwards the WordCounts is empty.
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
  /// Returns the WordTable that holds the word with the index `index`.
  WordTable& table(std::size_t index) { return tables_[shares_.size() == 0 ? 0 : shares_[index]]; }
  const WordTable& table(std::size_t index) const { return tables_[shares_.size() == 0 ? 0 : shares_[index]]; }

  // The tables that hold the words: one table, or several tables if several threads of a WordCounter counted the words.
  std::vector<WordTable> tables_ = std::vector<WordTable>(1);
  // For each word, by index, the place in the word's table where the word's record is stored.
  PagedArray<Place> places_;
  // For each word, by index, the index in tables_ of the table that holds the word. Empty if only one table exists.
  PagedArray<std::uint8_t> shares_;
  std::int64_t total_ = 0;
};

/// Counts the words of a long text on several threads. Each thread first splits some sections of the text into words.
/// Then each thread counts a share of the words of all sections; the hash of a word says to which share the word
/// belongs. So each word of the text is hashed once, and each different word is stored only once, in the table of its
/// share.
class WordCounter {
 public:
  explicit WordCounter(int threads);

  /// Counts the words of the next sections of the text, `pieces`. Words are separated by spaces and line feeds (LF).
  /// Each section ends at the end of a line. `run` calls a function on all threads.
  void add(const std::vector<std::string_view>& pieces, const RunOnThreads& run);

  /// Returns how many lines of the text counted so far contain a word.
  std::int64_t sentences() const;
  /// Returns all words counted so far, in the order of first occurrence. The WordCounter must not be used again.
  WordCounts take();

 private:
  /// One occurrence of a word in the part of the text that one thread splits into words.
  struct Word {
    const char* text;
    // The word's length in bytes, the word's hash, and how many words of the thread's part of the text come before.
    std::uint32_t size, hash, position;
  };
  /// The part of the text that one thread splits into words, as lists of words.
  struct alignas(64) Part {
    // words[i] lists the words of this part of the text that belong to share i (explained at the top of this file).
    std::vector<std::vector<Word>> words;
    // split() may read some bytes beyond the end of its input. Each string here is a copy of the last bytes of one
    // thread's part of the text, with zeros behind these bytes.
    std::deque<std::string> ends;
    std::uint32_t position = 0;  // number of words of this part that have been split off so far
    std::int64_t sentences = 0;
  };
  /// A word that occurs for the first time in the text: in which Part of the text and at which position in this part
  /// the word occurs, and the place where the word's record is stored.
  struct NewWord {
    std::size_t part;
    std::uint32_t position;
    WordTable::Place place;
  };

  void split(std::string_view piece, Part& part);
  void count(std::size_t share);
  void list_new_words();

  std::vector<Part> parts_;  // for each thread the part of the text that the thread splits into words
  // new_words_[share] lists the new words among the words that one thread counts (the words of the share `share`), in
  // the order in which the new words occur in the text.
  std::vector<std::vector<NewWord>> new_words_;
  WordCounts counts_;
};

}  // namespace heed
