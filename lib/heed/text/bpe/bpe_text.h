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
/// symbol, then the cell kEnd. Neighbouring words form a block, which a merge searches as a whole. `Cell` is an
/// unsigned integer type: 16 bits are enough for most texts and make searches fast; 32 bits hold more symbols.
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
  // Two lengths of blocks, in cells; a block is longer only if a single word is. Long blocks give short posting lists,
  // and short blocks can be searched faster.
  static constexpr std::size_t kLongBlock = 1024, kShortBlock = 96;

  struct Block {
    std::uint32_t start;       // the first cell of the block
    std::uint32_t length;      // number of cells that the words of the block use
    std::uint32_t first_word;  // the number of the block's first word; words are numbered in the order of add()
  };

  /// Makes an empty text with room for `capacity` cells. Memory is used only for cells that are written.
  explicit BpeText(std::size_t capacity)
      : pages_((capacity + kSlack) * sizeof(Cell), PageSize::huge),
        cells_(reinterpret_cast<Cell*>(pages_.data())),
        blocks_(bytes_of_blocks(capacity, kLongBlock)) {}

  /// Copies a text with another type of cell, block by block. The copy has room for `capacity` cells.
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

  /// Appends a word that occurs `count` times. has_room(count) must be true.
  template <class Symbols>
  void add(std::int64_t count, const Symbols& symbols) {
    const std::size_t start = size_;
    cells_[size_++] = cell_of(count);
    for (const auto symbol : symbols) cells_[size_++] = static_cast<Cell>(symbol);
    cells_[size_++] = kEnd;
    place_word(start, size_, kLongBlock);
  }
  /// Returns whether a word with this count can be added. Large counts are stored in a table of limited size.
  bool has_room(std::int64_t count) const {
    return count < std::int64_t{kTable} || table_.size() < static_cast<std::size_t>(kEnd - kTable);
  }

  /// Returns the number of cells from the first word to the last one, unused cells included.
  std::size_t size() const { return size_; }
  std::uint32_t words() const { return words_; }
  std::uint32_t blocks() const { return block_count_; }
  Block& block(std::uint32_t number) { return reinterpret_cast<Block*>(blocks_.data())[number]; }
  const Block& block(std::uint32_t number) const { return reinterpret_cast<const Block*>(blocks_.data())[number]; }
  // These two functions load a block's memory into the processor's cache before a search: prefetch_block() the Block,
  // and prefetch_cells() the first cells. prefetch_cells() reads the Block, so call prefetch_block() some time before.
  void prefetch_block(std::uint32_t number) const { __builtin_prefetch(&block(number), 1); }
  void prefetch_cells(std::uint32_t number) const {
    const Cell* const at = cells_ + block(number).start;
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + 64 / sizeof(Cell), 1);
  }
  /// Returns the first cell of a block.
  Cell* cells(const Block& block) { return cells_ + block.start; }
  /// Returns the count of a word from the word's first cell.
  std::int64_t count(Cell cell) const { return cell < kTable ? std::int64_t{cell} : table_[cell - kTable]; }

  /// Returns the number of the block that holds a word.
  std::uint32_t block_of(std::uint32_t word) const {
    const Block* const first = &block(0);
    const Block* const after = std::upper_bound(first, first + blocks(), word,
                                                [](std::uint32_t w, const Block& b) { return w < b.first_word; });
    return static_cast<std::uint32_t>(after - first - 1);
  }

  /// Calls take(word's number, count, symbols) for each word of block `number`.
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

  /// Removes the unused cells, puts the words into new blocks of `length` cells, and frees the memory behind the words.
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

  /// Returns the first index, from `at` on, of a cell `first` that the cell `second` follows, among `size` cells;
  /// `size` if no index is found. May read up to kSlack cells past the end.
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
  // A count below kTable is stored in its cell. A larger count is stored in table_[i], and its cell holds kTable + i.
  static constexpr Cell kTable = static_cast<Cell>(kEnd - kEnd / 4);
  static constexpr std::size_t kSlack = 64;  // cells behind the last word, which find() may read

  /// Returns an upper bound for the bytes of the Blocks of `cells` cells. Two neighbouring blocks together have more
  /// than `length` cells, or the words of the second block would have gone into the first.
  static std::size_t bytes_of_blocks(std::size_t cells, std::size_t length) {
    return (2 * (cells / length) + 2) * sizeof(Block);
  }

  /// Returns the cell for a word's count. Puts a large count into table_.
  Cell cell_of(std::int64_t count) {
    if (count < std::int64_t{kTable}) return static_cast<Cell>(count);
    table_.push_back(count);
    return static_cast<Cell>(kTable + (table_.size() - 1));
  }

  /// Adds the word in the cells from `start` to before `end` to the last block, or to a new block when the last is
  /// full.
  void place_word(std::size_t start, std::size_t end, std::size_t length) {
    if (block_count_ == 0 || end - block(block_count_ - 1).start > length)
      block(block_count_++) = {static_cast<std::uint32_t>(start), 0, words_};
    Block& last = block(block_count_ - 1);
    last.length = static_cast<std::uint32_t>(end) - last.start;
    ++words_;
  }

  Pages pages_;           // the memory of the cells
  Cell* cells_;           // the first cell in pages_
  std::size_t size_ = 0;  // number of cells from the first word to the last one
  std::uint32_t words_ = 0;
  Pages blocks_;  // the memory of an array of Block
  std::uint32_t block_count_ = 0;
  std::vector<std::int64_t> table_;  // large counts, see kTable
};

}  // namespace heed
