#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "heed/base/lanes.h"
#include "heed/base/pages.h"

namespace heed {

/// The words of the BPE learner in one array of cells. A word is a cell with the word's count, then one cell for each
/// symbol, then the cell kEnd. Neighbouring words form a block, which a merge of two symbols searches as a whole.
/// `Cell` is an unsigned integer type: 16 bits are enough for most texts and make searches fast; 32 bits hold more
/// symbols.
///
/// Example: two words, low (5 times) and lower (2 times), in block 0, before and after a merge of `l o`. The numbers of
/// the symbols are written as their texts; `_` is a cell that no word uses any more:
///
///     before    5 l o w</w> kEnd 2 l o w e r</w> kEnd
///     after     5 lo w</w> kEnd 2 lo w e r</w> kEnd _ _
///
/// A merge makes words shorter. The words of a block move together, so that unused cells are only at the block's end,
/// before the next block starts. compact() removes the unused cells of all blocks.
template <class Cell>
class BpeText {
 public:
  static constexpr Cell kEnd = std::numeric_limits<Cell>::max();
  static constexpr std::size_t kMostSymbols = kEnd;
  // Two values for the highest length of a block of words, in cells (array elements). Only a block of one very long
  // word is longer. Long blocks make the lists of the blocks that hold a pair short, and short blocks can be searched
  // faster.
  static constexpr std::size_t kLongBlock = 1024, kShortBlock = 96;

  struct Block {
    std::uint32_t start;   // the index in the array of cells of the block's first cell
    std::uint32_t length;  // the number of cells that the words of the block use
    // The index of the block's first word. The words of the text have the indices 0, 1, 2, ... in the order of add().
    std::uint32_t first_word;
  };

  /// Makes an empty text with room for `capacity` cells (elements of the array that holds the words). Memory is used
  /// only for cells that are written.
  explicit BpeText(std::size_t capacity)
      : pages_((capacity + kSlack) * sizeof(Cell), PageSize::huge),
        cells_(reinterpret_cast<Cell*>(pages_.data())),
        blocks_(bytes_of_blocks(capacity, kLongBlock)) {}

  /// Copies the words of a BpeText with another type of cell, block by block. The copy has room for `capacity` cells.
  template <class Other>
  BpeText(const BpeText<Other>& other, std::size_t capacity) : BpeText(capacity) {
    size_ = other.size();
    words_ = other.words();
    blocks_.grow(other.blocks() * sizeof(Block) + bytes_of_blocks(capacity, kLongBlock));
    for (std::uint32_t number = 0; number < other.blocks(); ++number) {
      const auto& block = other.block(number);
      this->block(block_count_++) = {block.start, block.length, block.first_word};
      Cell* at = cells_ + block.start;
      other.each_word(number, [&](std::uint32_t, std::int64_t count, std::span<const Other> symbols) {
        *at++ = cell_of(count);
        at = std::copy(symbols.begin(), symbols.end(), at);
        *at++ = kEnd;
      });
    }
  }

  /// Appends a word that consists of `symbols` and occurs `count` times. has_room(count) must be true.
  template <class Symbols>
  void add(std::int64_t count, const Symbols& symbols) {
    const std::size_t start = size_;
    cells_[size_++] = cell_of(count);
    for (const auto symbol : symbols) cells_[size_++] = static_cast<Cell>(symbol);
    cells_[size_++] = kEnd;
    place_word(start, size_, kLongBlock);
  }
  /// Returns whether add() can store a word with the count `count`. A count that is too large for a cell is stored in a
  /// separate table, and the size of this table is limited.
  bool has_room(std::int64_t count) const {
    return count < std::int64_t{kTable} || table_.size() < static_cast<std::size_t>(kEnd - kTable);
  }

  /// Returns the number of cells from the start of the first word to the end of the last word. The number includes
  /// cells that no word uses any more.
  std::size_t size() const { return size_; }
  std::uint32_t words() const { return words_; }
  std::uint32_t blocks() const { return block_count_; }
  Block& block(std::uint32_t number) { return reinterpret_cast<Block*>(blocks_.data())[number]; }
  const Block& block(std::uint32_t number) const { return reinterpret_cast<const Block*>(blocks_.data())[number]; }
  // prefetch_block() and prefetch_cells() load memory into the processor's cache before a block of words is searched.
  // prefetch_block() loads the Block, and prefetch_cells() the first cells of the block's words. prefetch_cells() reads
  // the Block, so that prefetch_block() should be called some time before.
  void prefetch_block(std::uint32_t number) const { __builtin_prefetch(&block(number), 1); }
  void prefetch_cells(std::uint32_t number) const {
    const Cell* const at = cells_ + block(number).start;
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + 64 / sizeof(Cell), 1);
  }
  /// Returns a pointer to the first cell of a block of words.
  Cell* cells(const Block& block) { return cells_ + block.start; }
  /// Returns how often a word occurs. `cell` is the first cell of the word, which holds the count or, for a large
  /// count, an index in table_.
  std::int64_t count(Cell cell) const { return cell < kTable ? std::int64_t{cell} : table_[cell - kTable]; }

  /// Returns the index of the block that holds the word with the index `word`.
  std::uint32_t block_of(std::uint32_t word) const {
    const Block* const first = &block(0);
    const Block* const after = std::upper_bound(first, first + blocks(), word,
                                                [](std::uint32_t w, const Block& b) { return w < b.first_word; });
    return static_cast<std::uint32_t>(after - first - 1);
  }

  /// Calls take(index of the word, count of the word, symbols of the word) for each word of the block with the index
  /// `number`.
  template <class Take>
  void each_word(std::uint32_t number, Take&& take) const {
    const Block& block = this->block(number);
    const Cell* at = cells_ + block.start;
    const Cell* const end = at + block.length;
    for (std::uint32_t word = block.first_word; at < end; ++word) {
      const Cell* const symbols = at + 1;
      const Cell* last = symbols;
      while (*last != kEnd) ++last;
      take(word, count(*at), std::span<const Cell>(symbols, last));
      at = last + 1;
    }
  }

  /// Moves the words together, so that no cell between two words is unused, puts the words into new blocks of about
  /// `length` cells, and frees the memory after the last word.
  void compact(std::size_t length) {
    std::size_t cells = 0;
    for (std::uint32_t number = 0; number < blocks(); ++number) cells += block(number).length;
    const std::uint32_t old_count = std::exchange(block_count_, 0);
    const Pages old = std::exchange(blocks_, Pages(bytes_of_blocks(cells, length)));
    size_ = 0;
    words_ = 0;
    for (std::uint32_t number = 0; number < old_count; ++number) {
      const Block& block = reinterpret_cast<const Block*>(old.data())[number];
      const Cell* at = cells_ + block.start;
      for (const Cell* const end = at + block.length; at < end;) {
        const Cell* last = at + 1;
        while (*last != kEnd) ++last;
        const std::size_t start = size_, word = static_cast<std::size_t>(++last - at);
        std::memmove(cells_ + size_, at, word * sizeof(Cell));
        size_ += word;
        place_word(start, size_, length);
        at = last;
      }
    }
    pages_.shrink((size_ + kSlack) * sizeof(Cell));
    blocks_.shrink(block_count_ * sizeof(Block));
  }

  /// Searches an array of `size` cells, from the index `at` on, for a cell equal to `first` directly before a cell
  /// equal to `second`. Returns the index of the cell `first` of the earliest match, or `size` if no match is found.
  /// May read up to kSlack cells behind the end of the array.
  static std::size_t find(const Cell* cells, std::size_t size, std::size_t at, Cell first, Cell second) {
    using L = Lanes<Cell>;
    const auto there = [&](std::size_t i) {
      return (L::load(cells + i) == first) & (L::load(cells + i + 1) == second);
    };
    for (; at < size; at += 2 * L::kCount) {
      const auto here = there(at), next = there(at + L::kCount);
      if (L::bits(here | next) == 0) continue;
      const std::size_t lane = L::first(here);
      return std::min(at + (lane < L::kCount ? lane : L::kCount + L::first(next)), size);
    }
    return size;
  }

 private:
  // If the count of a word is below kTable, the first cell of the word holds the count. A larger count is stored as
  // table_[i], and the first cell of the word holds kTable + i.
  static constexpr Cell kTable = static_cast<Cell>(kEnd - kEnd / 4);
  static constexpr std::size_t kSlack = 64;  // number of cells behind the last word's end that find() may read

  /// Returns the highest number of bytes that the array of Block needs when words of together `cells` cells are put
  /// into blocks of at most `length` cells. Two neighbouring blocks together have more than `length` cells, because
  /// otherwise the words of the second block would have been put into the first block.
  static std::size_t bytes_of_blocks(std::size_t cells, std::size_t length) {
    return (2 * (cells / length) + 2) * sizeof(Block);
  }

  /// Returns the value of a word's first cell, which represents the word's count. Appends a count that is too large for
  /// a cell to table_.
  Cell cell_of(std::int64_t count) {
    if (count < std::int64_t{kTable}) return static_cast<Cell>(count);
    table_.push_back(count);
    return static_cast<Cell>(kTable + (table_.size() - 1));
  }

  /// Adds the word whose cells have the indices from `start` to `end` - 1 to the last block. If the last block would
  /// then have more than `length` cells, adds the word to a new block.
  void place_word(std::size_t start, std::size_t end, std::size_t length) {
    if (block_count_ == 0 || end - block(block_count_ - 1).start > length)
      block(block_count_++) = {static_cast<std::uint32_t>(start), 0, words_};
    Block& last = block(block_count_ - 1);
    last.length = static_cast<std::uint32_t>(end) - last.start;
    ++words_;
  }

  Pages pages_;  // the memory of the array of cells, which holds the words
  Cell* cells_;  // the first element of the array of cells
  // The number of cells from the start of the first word to the end of the last word.
  std::size_t size_ = 0;
  std::uint32_t words_ = 0;
  Pages blocks_;  // the memory of an array of Block, with one element for each block of words
  std::uint32_t block_count_ = 0;
  // The counts of words that are too large for a cell. The word's first cell holds kTable plus the index in this table.
  std::vector<std::int64_t> table_;
};

}  // namespace heed
