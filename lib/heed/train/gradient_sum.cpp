#include "heed/train/gradient_sum.h"

#include <algorithm>
#include <bit>

#include "heed/base/error.h"
#include "heed/ops/optimizer_kernels.h"

namespace heed {
namespace {

/// Adds `from` to `to` and sets `from` to zero, block by block.
void move_sum(ParameterValues<float>& to, ParameterValues<float>& from) {
  const std::int64_t size = to.layout().storage_size();
  for (std::int64_t begin = 0; begin < size; begin += kSumBlock) {
    const Slice block{begin, std::min(begin + kSumBlock, size)};
    add_to<float>(to.part(block), from.part(block));
    std::ranges::fill(from.part(block), 0.0F);
  }
}

}  // namespace

GradientSum::GradientSum(const ParameterLayout& layout, int threads, Communicator& ranks)
    : layout_(&layout), threads_(threads), ranks_(ranks), own_slice_(slice_of_rank(ranks.rank())) {}

Slice GradientSum::leaves_of(int rank) const {
  return share_of_rank(std::ssize(nodes_), ranks_, rank);
}

Slice GradientSum::slice_of_rank(int rank) const {
  const std::int64_t size = layout_->storage_size(), blocks = (size + kSumBlock - 1) / kSumBlock;
  const auto boundary = [&](std::int64_t i) { return std::min(size, blocks * i / ranks_.size() * kSumBlock); };
  return {boundary(rank), boundary(rank + 1)};
}

/// Calls work(begin, end) for each of the largest nodes of the tree whose leaves are all computed by `rank`.
template <class Work>
void GradientSum::for_each_node(int rank, Work work) const {
  const auto leaves = std::ssize(nodes_);
  const Slice own = leaves_of(rank);
  for (std::int64_t begin = own.begin; begin < own.end;) {
    std::int64_t width = 1;
    while (begin % (2 * width) == 0 && begin + width < leaves && std::min(begin + 2 * width, leaves) <= own.end)
      width *= 2;
    const std::int64_t end = std::min(begin + width, leaves);
    work(begin, end);
    begin = end;
  }
}

void GradientSum::start(std::int64_t leaves) {
  if (leaves < 1) throw Error("internal: a sum of no gradients");
  nodes_.assign(static_cast<std::size_t>(leaves), {});
  free_.clear();
  for (const auto& buffer : buffers_) free_.push_back(buffer.get());
  if (leaves_of(ranks_.rank()).size() == 0) result_ = buffers_.empty() ? allocate() : buffers_[0].get();
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

std::int64_t GradientSum::first_open() const {
  const Slice own = leaves_of(ranks_.rank());
  std::int64_t leaf = own.begin;
  while (leaf < own.end && nodes_[static_cast<std::size_t>(leaf)].closed) ++leaf;
  return leaf;
}

GradientSum::Buffer* GradientSum::take_free(std::unique_lock<std::mutex>& lock) {
  if (!free_.empty()) {
    Buffer* const buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  if (std::ssize(buffers_) < 2 * std::int64_t{threads_}) return allocate();
  const std::int64_t begin = mergeable();
  if (begin < 0) return allocate();
  Node& left = nodes_[static_cast<std::size_t>(begin)];
  Node& right = nodes_[static_cast<std::size_t>(left.end)];
  // No other thread may take the two while they are added.
  left.complete = right.complete = false;
  lock.unlock();
  move_sum(*left.buffer, *right.buffer);
  lock.lock();
  Buffer* const buffer = right.buffer;
  left.end = right.end;
  left.complete = true;
  right = {.closed = true};
  return buffer;
}

ParameterValues<float>& GradientSum::open(std::int64_t leaf) {
  std::unique_lock lock(mutex_);
  closed_.wait(lock, [&] { return given_up_ || leaf < first_open() + 2 * std::int64_t{threads_}; });
  Buffer* const buffer = take_free(lock);
  nodes_[static_cast<std::size_t>(leaf)] = {.end = leaf + 1, .buffer = buffer};
  if (leaf == leaves_of(ranks_.rank()).begin) result_ = buffer;
  return *buffer;
}

void GradientSum::close(std::int64_t leaf) {
  {
    const std::scoped_lock lock(mutex_);
    Node& node = nodes_[static_cast<std::size_t>(leaf)];
    node.complete = node.closed = true;
  }
  closed_.notify_all();
}

void GradientSum::exchange(ThreadPool& pool) {
  if (ranks_.size() == 1) return;
  const int self = ranks_.rank();
  // The sums of this rank's own nodes, of all elements.
  pool.run([&](int thread) {
    const Slice slice = slice_of(layout_->storage_size(), pool.size(), thread);
    for_each_node(self, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = slice.begin; i < slice.end; i += kSumBlock)
        add_up(begin, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(end - begin))),
               {i, std::min(i + kSumBlock, slice.end)});
    });
  });
  sends_.clear();
  receives_.clear();
  std::int64_t nodes = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank)
    if (rank != self) for_each_node(rank, [&](std::int64_t, std::int64_t) { ++nodes; });
  const auto size = static_cast<std::size_t>(own_slice_.size());
  inbox_.resize(static_cast<std::size_t>(nodes) * size);
  auto place = inbox_.begin();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == self) {
      for_each_node(self, [&](std::int64_t begin, std::int64_t end) {
        nodes_[static_cast<std::size_t>(begin)].end = end;
        for (int to = 0; to < ranks_.size(); ++to)
          if (to != self)
            sends_.push_back({to, nodes_[static_cast<std::size_t>(begin)].buffer->part(slice_of_rank(to))});
      });
      continue;
    }
    for_each_node(rank, [&](std::int64_t begin, std::int64_t end) {
      nodes_[static_cast<std::size_t>(begin)] = {.end = end, .received = std::to_address(place), .complete = true};
      receives_.push_back({rank, {std::to_address(place), size}});
      place += static_cast<std::ptrdiff_t>(size);
    });
  }
  ranks_.exchange(sends_, receives_);
  pool.run([&](int thread) {
    const Slice slice = slice_of(layout_->storage_size(), pool.size(), thread);
    for_each_node(self, [&](std::int64_t begin, std::int64_t) {
      Buffer& buffer = *nodes_[static_cast<std::size_t>(begin)].buffer;
      std::ranges::fill(buffer.part({slice.begin, std::clamp(own_slice_.begin, slice.begin, slice.end)}), 0.0F);
      std::ranges::fill(buffer.part({std::clamp(own_slice_.end, slice.begin, slice.end), slice.end}), 0.0F);
    });
  });
}

void GradientSum::give_up() {
  {
    const std::scoped_lock lock(mutex_);
    given_up_ = true;
  }
  closed_.notify_all();
}

/// Adds up the node of the leaves from `begin` on that has room for `width` leaves, a power of two. Returns the block
/// of its sum.
std::span<float> GradientSum::add_up(std::int64_t begin, std::int64_t width, const Slice& block) {
  const Node& node = nodes_[static_cast<std::size_t>(begin)];
  const std::span<float> sum =
      node.buffer ? node.buffer->part(block)
                  : std::span(node.received + (block.begin - own_slice_.begin), static_cast<std::size_t>(block.size()));
  if (node.end == std::min(begin + width, std::ssize(nodes_))) return sum;
  const std::int64_t half = width / 2;
  add_up(begin, half, block);
  if (begin + half < std::ssize(nodes_)) {
    const std::span<float> right = add_up(begin + half, half, block);
    add_to<float>(sum, right);
    std::ranges::fill(right, 0.0F);
  }
  return sum;
}

void GradientSum::add_up(const Slice& slice) {
  const auto width = static_cast<std::int64_t>(std::bit_ceil(nodes_.size()));
  for (std::int64_t begin = slice.begin; begin < slice.end; begin += kSumBlock) {
    const Slice block{begin, std::min(begin + kSumBlock, slice.end)};
    const std::span<float> sum = add_up(0, width, block), out = result_->part(block);
    if (sum.data() != out.data()) std::ranges::copy(sum, out.begin());
  }
}

void GradientSum::clear(const Slice& slice) {
  if (result_) std::ranges::fill(result_->part(slice), 0.0F);
}

std::int64_t GradientSum::memory() const {
  return (std::ssize(buffers_) * layout_->storage_size() + std::ssize(inbox_)) *
         static_cast<std::int64_t>(sizeof(float));
}

}  // namespace heed
