#include "heed/train/gpu_sum.h"

#include <algorithm>
#include <set>

#include "heed/tensor/cuda_memory.h"

namespace heed {
namespace {

/// The numbers in a cache line: Communicator::all_gather() wants slices of large arrays to begin at one.
constexpr std::int64_t kUnit = 16;

/// Returns the slice of `count` numbers that a rank adds up.
Slice slice_of_rank(std::int64_t count, const Communicator& ranks, int rank) {
  const Slice units = share_of_rank((count + kUnit - 1) / kUnit, ranks, rank);
  return {std::min(count, kUnit * units.begin), std::min(count, kUnit * units.end)};
}

}  // namespace

void HostSum::add_up(CudaContext& gpu, std::span<float> numbers) {
  const auto count = std::ssize(numbers);
  own_.resize(numbers.size());
  copy_from_gpu(gpu, own_.data(), numbers.data(), numbers.size_bytes());
  wait_for_gpu(gpu);

  const auto part_of = [](std::vector<float>& array, std::int64_t begin, std::int64_t size) {
    return std::span(array).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
  };
  std::vector<Slice> slices;
  for (int rank = 0; rank < ranks_.size(); ++rank) slices.push_back(slice_of_rank(count, ranks_, rank));
  const Slice mine = slices[static_cast<std::size_t>(ranks_.rank())];
  others_.resize(static_cast<std::size_t>(ranks_.size() * mine.size()));
  std::vector<Message> sends, receives;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    const Slice& theirs = slices[static_cast<std::size_t>(rank)];
    sends.push_back({rank, part_of(own_, theirs.begin, theirs.size())});
    receives.push_back({rank, part_of(others_, rank * mine.size(), mine.size())});
  }
  ranks_.exchange(sends, receives);

  sums_.assign(static_cast<std::size_t>(mine.size()), 0.0F);
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const float* const terms = rank == ranks_.rank() ? own_.data() + mine.begin : others_.data() + rank * mine.size();
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += terms[i];
  }
  std::ranges::copy(sums_, own_.begin() + mine.begin);
  all_gather_elements(ranks_, std::span(own_), slices);
  copy_to_gpu(gpu, numbers.data(), own_.data(), numbers.size_bytes());
}

std::unique_ptr<GpuSum> make_gpu_sum(Communicator& ranks, const std::string& id, Log& log) {
  const std::vector<std::string> ids = ranks.gather(id);
  if (std::set(ids.begin(), ids.end()).size() < ids.size()) return std::make_unique<HostSum>(ranks);
  std::string why_not;
  const NcclLibrary* const library = load_nccl(why_not);
  if (!ranks.any(!library)) return std::make_unique<NcclSum>(*library, ranks);
  const std::vector<std::string> reasons = ranks.gather(why_not);
  const auto reason = std::ranges::find_if(reasons, [](const std::string& text) { return !text.empty(); });
  log.warn("the gradients of the ranks go through the memory of the hosts, which is slow: " + *reason);
  return std::make_unique<HostSum>(ranks);
}

}  // namespace heed
