#pragma once

#include <algorithm>
#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heed/dist/communicator.h"

namespace heed {

/// Runs `work`, and returns the message of the Error that it throws: "-" for OtherRankFailed, nothing without an error.
inline std::string message_of_rank(const std::function<void()>& work) {
  try {
    work();
  } catch (const OtherRankFailed&) {
    return "-";
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Runs `work` on several ranks that are threads of this process, and waits for all. For tests of what ranks compute
/// together; `work` must not throw.
inline void run_ranks(int size, const std::function<void(Communicator&)>& work) {
  struct Shared {
    explicit Shared(int count)
        : barrier(count), sends(static_cast<std::size_t>(count)), arrays(sends.size()), numbers(sends.size()) {}
    std::barrier<> barrier;
    std::vector<std::span<const Message>> sends;
    std::vector<std::span<std::byte>> arrays;
    std::vector<std::int64_t> numbers;
  };
  class ThreadRank final : public Communicator {
   public:
    ThreadRank(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(shared_.sends.size()); }
    void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
      shared_.sends[own()] = sends;
      shared_.barrier.arrive_and_wait();
      std::vector<std::size_t> read(shared_.sends.size());  // the number of messages of each rank that were read
      for (const Message& message : receives) {
        const auto from = static_cast<std::size_t>(message.rank);
        const auto all = shared_.sends[from];
        while (read[from] < all.size() && all[read[from]].rank != rank_) ++read[from];
        if (read[from] == all.size() || all[read[from]].numbers.size() != message.numbers.size())
          throw Error("a message is missing, or has another length");
        const auto numbers = all[read[from]++].numbers;
        std::copy(numbers.begin(), numbers.end(), message.numbers.begin());
      }
      shared_.barrier.arrive_and_wait();
    }
    void all_gather(std::span<std::byte> array, std::span<const Slice> parts) override {
      shared_.arrays[own()] = array;
      shared_.barrier.arrive_and_wait();
      for (std::size_t r = 0; r < parts.size(); ++r)
        if (r != own() && parts[r].size() > 0)
          std::memcpy(array.data() + parts[r].begin, shared_.arrays[r].data() + parts[r].begin,
                      static_cast<std::size_t>(parts[r].size()));
      shared_.barrier.arrive_and_wait();
    }
    void broadcast(std::span<std::byte> bytes) override {
      shared_.arrays[own()] = bytes;
      shared_.barrier.arrive_and_wait();
      if (rank_ != 0 && !bytes.empty()) std::memcpy(bytes.data(), shared_.arrays[0].data(), bytes.size());
      shared_.barrier.arrive_and_wait();
    }
    std::int64_t largest(std::int64_t number) override {
      shared_.numbers[own()] = number;
      shared_.barrier.arrive_and_wait();
      const std::int64_t out = *std::max_element(shared_.numbers.begin(), shared_.numbers.end());
      shared_.barrier.arrive_and_wait();
      return out;
    }

   private:
    std::size_t own() const { return static_cast<std::size_t>(rank_); }
    Shared& shared_;
    int rank_;
  };

  Shared shared(size);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      ThreadRank rank(shared, r);
      work(rank);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace heed
