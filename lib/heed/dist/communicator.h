#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/threads.h"

namespace heed {

/// An array of numbers that one rank sends to another.
struct Message {
  int rank = 0;  ///< the other rank: the receiver of a sent message, the sender of a received one
  std::span<float> numbers;
};

/// The processes that work on one training or translation together, which are called ranks. All functions are
/// collective: every rank must call the same functions in the same order, each from one thread. They throw Error where
/// the connection to another rank is lost.
///
/// No function computes sums: floating-point sums depend on the order of their terms, which each caller fixes itself.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Returns the number of this process, from 0 to size() - 1. Rank 0 reads standard input, logs and writes files.
  virtual int rank() const = 0;
  /// Returns the number of processes.
  virtual int size() const = 0;

  /// Sends messages to other ranks and receives messages from others. The messages from one rank to another arrive in
  /// the order in which they are listed, and must have the lengths that the receiver lists.
  virtual void exchange(std::span<const Message> sends, std::span<const Message> receives) = 0;
  /// Completes an array of which each rank has a part: part r, in bytes, is copied from rank r to all others.
  virtual void all_gather(std::span<std::byte> array, std::span<const Slice> parts) = 0;
  /// Copies `bytes` from rank 0 to all other ranks.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// Returns the largest of the numbers that the ranks give.
  virtual std::int64_t largest(std::int64_t number) = 0;

  /// Must be called before this process ends because of an error that all ranks know: the process then leaves the group
  /// in the regular way. After any other error, the process ends without telling the other ranks, and the launcher ends
  /// them.
  void end_together() { ends_together_ = true; }

  /// Returns the smallest of the numbers that the ranks give.
  std::int64_t smallest(std::int64_t number) { return -largest(-number); }
  /// Tells whether any rank says yes.
  bool any(bool yes) { return largest(yes ? 1 : 0) != 0; }
  /// Tells whether all ranks give the same number.
  bool all_same(std::int64_t number) { return smallest(number) == largest(number); }
  /// Returns the texts of all ranks.
  std::vector<std::string> gather(const std::string& text);
  /// Copies the text of rank 0 to all other ranks.
  void broadcast_text(std::string& text);

 protected:
  bool ends_together() const { return ends_together_; }

 private:
  bool ends_together_ = false;
};

/// Returns the communicator of a process that works alone, which does nothing.
Communicator& no_other_ranks();

/// Returns the communicator of the processes that a launcher such as mpirun or srun has started together, or, without a
/// launcher, null. Throws UsageError where there is a launcher and heed was built without MPI. May be called once in a
/// process.
std::unique_ptr<Communicator> make_communicator();

/// Completes an array of which rank r has the elements parts[r].
template <class T>
void all_gather_elements(Communicator& ranks, std::span<T> array, std::span<const Slice> parts) {
  if (ranks.size() == 1) return;
  std::vector<Slice> bytes;
  const auto size = static_cast<std::int64_t>(sizeof(T));
  for (const Slice& each : parts) bytes.push_back({each.begin * size, each.end * size});
  ranks.all_gather(std::as_writable_bytes(array), bytes);
}

/// Returns the values that the ranks give, in the order of the ranks.
template <class T>
std::vector<T> values_of_ranks(Communicator& ranks, const T& own) {
  std::vector<T> out(static_cast<std::size_t>(ranks.size()));
  out[static_cast<std::size_t>(ranks.rank())] = own;
  std::vector<Slice> parts;
  for (std::int64_t r = 0; r < ranks.size(); ++r) parts.push_back({r, r + 1});
  all_gather_elements(ranks, std::span(out), parts);
  return out;
}

/// Replaces each of the numbers by the sum of this number on all ranks.
void add_up(Communicator& ranks, std::span<std::int64_t> numbers);

/// Appends `part` to `text` in a form from which take_part() takes it again.
void add_part(std::string& text, std::string_view part);
/// Takes the first part away from `text`, which add_part() has made.
std::string_view take_part(std::string_view& text);

/// Returns the part of `count` pieces of work that a rank does. The parts of all ranks follow one another.
inline Slice share_of_rank(std::int64_t count, const Communicator& ranks, int rank) {
  return {count * rank / ranks.size(), count * (rank + 1) / ranks.size()};
}

/// The exception of a rank that ends because another one has failed. Rank 0 ends with a message and an exit code; the
/// others end with neither, because a launcher kills all processes as soon as one of them ends with an exit code.
class OtherRankFailed : public Error {
 public:
  OtherRankFailed() : Error("another rank has failed") {}
};

/// Runs `work` on every rank and waits for all. Where it throws Error on some ranks, rank 0 throws Error with the
/// messages of all ranks that failed, each once, and the others throw OtherRankFailed. UsageErrors remain UsageErrors.
void run_together(Communicator& ranks, const std::function<void()>& work);
/// Ends all ranks, which have met the same error: rank 0 throws it, and the others throw OtherRankFailed.
template <class AnyError>
[[noreturn]] void fail_together(Communicator& ranks, const AnyError& error) {
  ranks.end_together();
  if (ranks.rank() != 0) throw OtherRankFailed();
  throw error;
}
/// Runs `work` on rank 0 while the others wait. If it throws Error, the others throw OtherRankFailed.
void run_on_first(Communicator& ranks, const std::function<void()>& work);

/// Returns how many processes the launcher has started together, from the environment variables that it sets; 1 without
/// a launcher.
int launched_processes();
/// Returns the number of this process, from 0, among the processes that the launcher has started, from the environment
/// variables that the launcher sets; 0 without a launcher.
int launched_rank();

}  // namespace heed
