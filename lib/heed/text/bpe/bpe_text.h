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

/// Words that are being merged, in memory order: each is a cell with its count, its symbols, and kEnd. Some words stand
/// together in a block, short enough to be searched whole; within its room a block has no gaps. `Cell` is unsigned.
template <class Cell>
class BpeText {
 public:
  static constexpr Cell kEnd = std::numeric_limits<Cell>::max();
  static constexpr std::size_t kMostSymbols = kEnd;
  // Cells of a block, unless a word is longer. Long blocks make lists of blocks short, short ones are searched faster.
  static constexpr std::size_t kLongBlock = 1024, kShortBlock = 96;

  struct Block {
    std::uint32_t start;  // in cells
    std::uint32_t length;
    std::uint32_t first_word;
  };

  /// Room for so many cells at most; memory is taken as they are written.
  explicit BpeText(std::size_t capacity)
      : pages_((capacity + kSlack) * sizeof(Cell), PageSize::huge),
        cells_(reinterpret_cast<Cell*>(pages_.data())),
        blocks_(bytes_of_blocks(capacity, kLongBlock)) {}

  /// Another text in the same blocks, with room for as many cells at most.
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

  /// Adds a word of a count that has_room().
  template <class Symbols>
  void add(std::int64_t count, const Symbols& symbols) {
    const std::size_t start = size_;
    cells_[size_++] = cell_of(count);
    for (const auto symbol : symbols) cells_[size_++] = static_cast<Cell>(symbol);
    cells_[size_++] = kEnd;
    place_word(start, size_, kLongBlock);
  }
  /// Whether a count can be stored still.
  bool has_room(std::int64_t count) const {
    return count < std::int64_t{kTable} || table_.size() < static_cast<std::size_t>(kEnd - kTable);
  }

  std::size_t size() const { return size_; }
  std::uint32_t words() const { return words_; }
  std::uint32_t blocks() const { return block_count_; }
  Block& block(std::uint32_t number) { return reinterpret_cast<Block*>(blocks_.data())[number]; }
  const Block& block(std::uint32_t number) const { return reinterpret_cast<const Block*>(blocks_.data())[number]; }
  // Bring what a search of a block will look at into the cache: the second some time after the first.
  void prefetch_block(std::uint32_t number) const { __builtin_prefetch(&block(number), 1); }
  void prefetch_cells(std::uint32_t number) const {
    const Cell* const at = cells_ + block(number).start;
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + 64 / sizeof(Cell), 1);
  }
  Cell* cells(const Block& block) { return cells_ + block.start; }
  std::int64_t count(Cell cell) const { return cell < kTable ? std::int64_t{cell} : table_[cell - kTable]; }

  /// The block that a word stands in.
  std::uint32_t block_of(std::uint32_t word) const {
    const Block* const first = &block(0);
    const Block* const after = std::upper_bound(first, first + blocks(), word,
                                                [](std::uint32_t w, const Block& b) { return w < b.first_word; });
    return static_cast<std::uint32_t>(after - first - 1);
  }

  /// Calls take(word, count, symbols) for the words of a block.
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

  /// Moves the words together into blocks of `length` cells again, and gives the room behind them back.
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

  /// From `at` on, the first place of a cell `first` with `second` behind it among `size` cells; `size` where there is
  /// none. Reads a little past the end.
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
  static constexpr Cell kTable = static_cast<Cell>(kEnd - kEnd / 4);  // counts from here on are places in table_
  static constexpr std::size_t kSlack = 64;                           // find() may read these

  /// What the blocks of so many cells take at most: two side by side have more than `length` of them together.
  static std::size_t bytes_of_blocks(std::size_t cells, std::size_t length) {
    return (2 * (cells / length) + 2) * sizeof(Block);
  }

  Cell cell_of(std::int64_t count) {
    if (count < std::int64_t{kTable}) return static_cast<Cell>(count);
    table_.push_back(count);
    return static_cast<Cell>(kTable + (table_.size() - 1));
  }

  void place_word(std::size_t start, std::size_t end, std::size_t length) {
    if (block_count_ == 0 || end - block(block_count_ - 1).start > length)
      block(block_count_++) = {static_cast<std::uint32_t>(start), 0, words_};
    Block& last = block(block_count_ - 1);
    last.length = static_cast<std::uint32_t>(end) - last.start;
    ++words_;
  }

  Pages pages_;
  Cell* cells_;
  std::size_t size_ = 0;
  std::uint32_t words_ = 0;
  Pages blocks_;
  std::uint32_t block_count_ = 0;
  std::vector<std::int64_t> table_;
};

}  // namespace heed
