#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "heed/autograd/parameters.h"
#include "heed/base/threads.h"
#include "heed/dist/communicator.h"

namespace heed {

/// The number of elements of the flat array that GradientSum adds up at a time, so that sums within the tree stay in
/// the cache.
constexpr std::int64_t kSumBlock = 4096;

/// Adds up the gradients of one update. The shards of the update are divided into leaves; the gradient of a leaf is the
/// sum over the leaf's shards. The leaves are added up in a fixed order, which depends on the number of leaves alone: a
/// balanced binary tree, in which leaf 1 is added to leaf 0, leaf 3 to leaf 2, then both sums to each other, and so on.
/// The sum therefore has the same bits, whichever threads compute the leaves, and in whatever order the threads finish.
///
/// A thread computes a leaf in a buffer, an array with the gradients of all parameters. With T threads, there are few
/// buffers: if 2 T buffers are in use, a thread that needs a buffer first adds up two neighbouring nodes of the tree
/// that are complete. open() also waits while the number of the leaf is 2 T or more above the number of this rank's
/// first leaf that is not closed. There are therefore never more than 2 T + log2(leaves) + 1 buffers.
///
/// Each rank computes some of the leaves, and adds up one slice of the elements over all leaves. A rank first adds up
/// each node of the tree all of whose leaves it has computed, and sends each other rank that rank's slice of the sum.
/// If the number of ranks is a power of two, every number is sent at most once, otherwise a few times.
class GradientSum {
 public:
  /// `threads` is the number of threads of this rank that compute leaves at the same time.
  GradientSum(const ParameterLayout& layout, int threads, Communicator& ranks);

  /// Begins a sum of `leaves` leaves, at least 1. The buffers of an earlier sum must have been cleared.
  void start(std::int64_t leaves);
  /// Returns which leaves a rank computes. The parts of all ranks follow one another.
  Slice leaves_of(int rank) const;
  /// Returns a buffer of zeros, to which the caller adds the gradient of `leaf`, one of this rank's leaves. Each leaf
  /// must be opened exactly once. Several threads may call open() at once; a call may wait until other threads have
  /// closed their leaves.
  ParameterValues<float>& open(std::int64_t leaf);
  /// Says that the gradient of a leaf is complete. May be called by several threads at once.
  void close(std::int64_t leaf);
  /// Says that a leaf will never be complete, so that no thread waits for it. No sum can be computed afterwards.
  void give_up();

  /// Returns which elements of the flat array a rank adds up. The boundaries are multiples of kSumBlock; the parts of
  /// all ranks follow one another and cover the array.
  Slice slice_of_rank(int rank) const;
  /// Sends this rank's sums to the other ranks, and receives theirs. All leaves must be closed.
  void exchange(ThreadPool& pool);
  /// Adds the elements of `slice`, a part of this rank's slice, up over all leaves. With several ranks, exchange() must
  /// come before. Afterwards only result() has elements other than zero in the slice. May be called for different
  /// slices by several threads at once.
  void add_up(const Slice& slice);
  /// Returns the array that receives the sum of this rank's slice. Before the first start(), there is none.
  ParameterValues<float>& result() { return *result_; }
  /// Sets the elements of `slice` in result() to zero. Before the next start(), the caller must clear this rank's whole
  /// slice, and all other elements of result() that the caller has written.
  void clear(const Slice& slice);
  /// Returns how many bytes the buffers occupy.
  std::int64_t memory() const;

 private:
  using Buffer = ParameterValues<float>;

  /// The sum of the leaves begin ... end - 1, where `begin` is the node's index in nodes_.
  struct Node {
    std::int64_t end = 0;
    Buffer* buffer = nullptr;   ///< the sum, of a node of this rank
    float* received = nullptr;  ///< the elements of this rank's slice, of another rank's node
    bool complete = false;      ///< whether it may be added to its neighbour
    bool closed = false;        ///< whether leaf `begin` has ended
  };

  /// The first leaf of this rank that is not closed.
  std::int64_t first_open() const;
  /// Returns a buffer of zeros. Adds up two nodes if all buffers are in use; meanwhile, `lock` is open.
  Buffer* take_free(std::unique_lock<std::mutex>& lock);
  Buffer* allocate();
  /// Returns the first leaf of a complete node whose right neighbour is complete too, or -1.
  std::int64_t mergeable() const;
  bool has_complete_neighbour(std::int64_t left) const;
  template <class Work>
  void for_each_node(int rank, Work work) const;
  std::span<float> add_up(std::int64_t begin, std::int64_t width, const Slice& block);

  const ParameterLayout* layout_;
  int threads_;
  Communicator& ranks_;
  Slice own_slice_;
  Buffer* result_ = nullptr;
  std::vector<float> inbox_;
  std::vector<Message> sends_, receives_;
  std::mutex mutex_;
  std::condition_variable closed_;
  bool given_up_ = false;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> free_;
  std::vector<Node> nodes_;
};

}  // namespace heed
