#include "heed/tensor/arena.h"

#include <algorithm>

namespace heed {
namespace {

constexpr std::size_t kFirstBlock = std::size_t{1} << 20;
/// The largest total size, in bytes, of the blocks of an arena that reset() replaces by one block. For larger blocks,
/// freeing the memory and allocating it again takes longer than the replacement saves.
constexpr std::size_t kMostMerged = std::size_t{64} << 20;

/// Rounds a number of bytes up to a multiple of `alignment`, a power of two.
std::size_t round_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

}  // namespace

void Arena::add_block(std::size_t bytes) {
  Block block;
  block.memory = {static_cast<std::byte*>(source_.allocate(bytes)), Free{bytes, source_.free}};
  block.size = bytes;
  blocks_.push_back(std::move(block));
}

void* Arena::allocate(std::size_t bytes) {
  bytes = round_up(std::max<std::size_t>(bytes, 1), source_.alignment);
  while (current_ < blocks_.size() && blocks_[current_].used + bytes > blocks_[current_].size) {
    if (current_ + 1 == blocks_.size()) break;
    ++current_;
    blocks_[current_].used = 0;
  }
  if (blocks_.empty() || blocks_[current_].used + bytes > blocks_[current_].size) {
    // A new block of the arena is at least half as large as all blocks together. An arena thus reaches its final size
    // with few blocks, and holds little more memory than a training or decoding step needs. The memory of a GPU may be
    // nearly full: it then has the bytes that are needed, but no block of this size.
    const std::size_t generous = std::max({bytes, reserved() / 2, kFirstBlock});
    try {
      add_block(generous);
    } catch (const OutOfGpuMemory&) {
      if (generous == bytes) throw;
      add_block(bytes);
    }
    current_ = blocks_.size() - 1;
  }
  Block& block = blocks_[current_];
  void* out = block.memory.get() + block.used;
  block.used += bytes;
  return out;
}

void Arena::reset() {
  if (const std::size_t total = reserved(); blocks_.size() > 1 && total <= kMostMerged) {
    blocks_.clear();
    add_block(total);
  }
  current_ = 0;
  for (Block& block : blocks_) block.used = 0;
}

void Arena::release(Mark mark) {
  if (blocks_.empty()) return;
  for (std::size_t i = mark.block + 1; i < blocks_.size(); ++i) blocks_[i].used = 0;
  current_ = mark.block;
  blocks_[current_].used = mark.used;
}

std::size_t Arena::used() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < blocks_.size() && i <= current_; ++i) sum += blocks_[i].used;
  return sum;
}

std::size_t Arena::reserved() const {
  std::size_t sum = 0;
  for (const Block& block : blocks_) sum += block.size;
  return sum;
}

}  // namespace heed
