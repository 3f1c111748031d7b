#include "heed/train/gradient_sum.h"

#include <algorithm>
#include <bit>

#include "heed/base/error.h"
#include "heed/ops/optimizer_kernels.h"

namespace heed {
namespace {

std::span<float> part(ParameterValues<float>& values, const Slice& slice) {
  return values.flat().subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
}

/// Adds `from` to `to` and sets `from` to zero, block by block.
void move_sum(ParameterValues<float>& to, ParameterValues<float>& from, const Slice& slice) {
  for (std::int64_t begin = slice.begin; begin < slice.end; begin += kSumBlock) {
    const Slice block{begin, std::min(begin + kSumBlock, slice.end)};
    add_to<float>(part(to, block), part(from, block));
    std::ranges::fill(part(from, block), 0.0F);
  }
}

}  // namespace

void GradientSum::start(std::int64_t leaves) {
  if (leaves < 1) throw Error("internal: a sum of no gradients");
  nodes_.assign(static_cast<std::size_t>(leaves), {});
  free_.clear();
  for (const auto& buffer : buffers_) free_.push_back(buffer.get());
}

GradientSum::Buffer* GradientSum::allocate() {
  buffers_.push_back(std::make_unique<Buffer>(*layout_));
  return buffers_.back().get();
}

bool GradientSum::has_complete_neighbour(std::int64_t left) const {
  const auto leaves = std::ssize(nodes_);
  const Node& node = nodes_[static_cast<std::size_t>(left)];
  const std::int64_t width = node.end - left;
  if (!node.complete || node.end >= leaves || left % (2 * width) != 0) return false;
  const Node& right = nodes_[static_cast<std::size_t>(node.end)];
  return right.complete && right.end == std::min(node.end + width, leaves);
}

std::int64_t GradientSum::mergeable() const {
  for (std::int64_t i = 0; i < std::ssize(nodes_); ++i)
    if (has_complete_neighbour(i)) return i;
  return -1;
}

GradientSum::Buffer* GradientSum::take_free(std::unique_lock<std::mutex>& lock) {
  if (free_.empty() && std::ssize(buffers_) < 2 * std::int64_t{threads_}) return allocate();
  if (free_.empty()) {
    const std::int64_t begin = mergeable();
    if (begin < 0) return allocate();
    Node& left = nodes_[static_cast<std::size_t>(begin)];
    Node& right = nodes_[static_cast<std::size_t>(left.end)];
    // No other thread may take the two while they are added.
    left.complete = right.complete = false;
    lock.unlock();
    move_sum(*left.buffer, *right.buffer, {0, layout_->storage_size()});
    lock.lock();
    Buffer* const buffer = right.buffer;
    left.end = right.end;
    left.complete = true;
    right = {};
    return buffer;
  }
  Buffer* const buffer = free_.back();
  free_.pop_back();
  return buffer;
}

ParameterValues<float>& GradientSum::open(std::int64_t leaf) {
  std::unique_lock lock(mutex_);
  Buffer* const buffer = take_free(lock);
  nodes_[static_cast<std::size_t>(leaf)] = {leaf + 1, buffer, false};
  return *buffer;
}

void GradientSum::close(std::int64_t leaf) {
  const std::scoped_lock lock(mutex_);
  nodes_[static_cast<std::size_t>(leaf)].complete = true;
}

/// Adds up the node of the leaves from `begin` on that has room for `width` leaves, a power of two. Returns the block
/// of its sum.
float* GradientSum::add_up(std::int64_t begin, std::int64_t width, const Slice& block) {
  const Node& node = nodes_[static_cast<std::size_t>(begin)];
  const std::span<float> sum = part(*node.buffer, block);
  if (node.end == std::min(begin + width, std::ssize(nodes_))) return sum.data();
  const std::int64_t half = width / 2;
  add_up(begin, half, block);
  if (begin + half < std::ssize(nodes_)) {
    const std::span<float> right(add_up(begin + half, half, block), sum.size());
    add_to<float>(sum, right);
    std::ranges::fill(right, 0.0F);
  }
  return sum.data();
}

void GradientSum::add_up(const Slice& slice) {
  const auto width = static_cast<std::int64_t>(std::bit_ceil(nodes_.size()));
  for (std::int64_t begin = slice.begin; begin < slice.end; begin += kSumBlock)
    add_up(0, width, {begin, std::min(begin + kSumBlock, slice.end)});
}

void GradientSum::clear(const Slice& slice) {
  if (!nodes_.empty()) std::ranges::fill(part(result(), slice), 0.0F);
}

std::int64_t GradientSum::memory() const {
  return std::ssize(buffers_) * layout_->storage_size() * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace heed
