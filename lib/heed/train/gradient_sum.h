#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "heed/autograd/parameters.h"
#include "heed/base/threads.h"

namespace heed {

/// The number of elements of the flat array that GradientSum adds up at a time, so that sums within the tree stay in
/// the cache.
constexpr std::int64_t kSumBlock = 4096;

/// Adds up the gradients of an update's leaves in a fixed order, which depends on the number of leaves alone: a
/// balanced binary tree, in which leaf 1 is added to leaf 0, leaf 3 to leaf 2, then both sums to each other, and so on.
/// So the sum has the same bits whichever threads compute the leaves, in whatever order they end.
///
/// A leaf is computed in a buffer, an array of all parameters' gradients. There are few buffers: when all are in use, a
/// thread that needs one first adds up two neighbours that have ended. With T threads, at most 2 T buffers exist, or,
/// if that is more, T + log2(leaves).
class GradientSum {
 public:
  /// `threads` is the number of threads that compute leaves at the same time.
  GradientSum(const ParameterLayout& layout, int threads) : layout_(&layout), threads_(threads) {}

  /// Begins a sum of `leaves` leaves, at least 1. The buffers of an earlier sum must have been cleared.
  void start(std::int64_t leaves);
  /// Returns a buffer of zeros for the gradient of a leaf, which the caller adds to it. Each leaf is opened once. May
  /// be called by several threads at once.
  ParameterValues<float>& open(std::int64_t leaf);
  /// Says that the gradient of a leaf is complete. May be called by several threads at once.
  void close(std::int64_t leaf);

  /// Adds the elements of `slice` up over all leaves, which must be closed. Afterwards only result() has elements other
  /// than zero in the slice. May be called for different slices by several threads at once.
  void add_up(const Slice& slice);
  /// Returns the array that receives the sum. Before the first start(), there is none.
  ParameterValues<float>& result() { return *nodes_[0].buffer; }
  /// Sets the elements of `slice` in result() to zero. Before the next start(), slices that cover all elements must be
  /// cleared.
  void clear(const Slice& slice);
  /// Returns how many bytes the buffers occupy.
  std::int64_t memory() const;

 private:
  using Buffer = ParameterValues<float>;

  /// The sum of the leaves begin ... end - 1, where `begin` is the node's index in nodes_.
  struct Node {
    std::int64_t end = 0;
    Buffer* buffer = nullptr;
    bool complete = false;
  };

  Buffer* take_free(std::unique_lock<std::mutex>& lock);
  Buffer* allocate();
  /// Returns the first leaf of a complete node whose right neighbour is complete too, or -1.
  std::int64_t mergeable() const;
  bool has_complete_neighbour(std::int64_t left) const;
  float* add_up(std::int64_t begin, std::int64_t width, const Slice& block);

  const ParameterLayout* layout_;
  int threads_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> free_;
  std::vector<Node> nodes_;
};

}  // namespace heed
