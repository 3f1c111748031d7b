#include "heed/data/training_corpus.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "heed/base/random.h"

namespace heed {
namespace {

/// The number of blocks that are read, and sent to other ranks, at a time.
constexpr std::int64_t kBlocksReadAtOnce = 64;

/// Returns the texts of all ranks: element i is element i / size of rank i % size.
std::vector<std::string> gather_in_turn(Communicator& ranks, const std::string& packed) {
  std::vector<std::string> out;
  const std::vector<std::string> all = ranks.gather(packed);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::string_view rest = all[rank];
    for (std::size_t i = rank; !rest.empty(); i += all.size()) {
      out.resize(std::max(out.size(), i + 1));
      out[i] = take_part(rest);
    }
  }
  return out;
}

}  // namespace

TrainingCorpus::TrainingCorpus(Communicator& ranks, const std::optional<ShuffleWindow>& window)
    : ranks_(ranks), window_(window) {
  if (window) file_.emplace(window->folder);
}

void TrainingCorpus::add(const std::vector<ParallelCorpus>& blocks) {
  if (!file_) {
    std::string packed;
    for (const ParallelCorpus& block : blocks) add_part(packed, block.bytes());
    for (const std::string& bytes : gather_in_turn(ranks_, packed)) present_.append(bytes);
    return;
  }
  run_together(ranks_, [&] {
    for (const ParallelCorpus& block : blocks) {
      const std::string bytes = block.bytes();
      blocks_.push_back(
          {file_->size(), std::ssize(bytes), ranks_.rank(), block.size(), block.target_tokens(), block.fingerprint()});
      file_->append(bytes);
    }
  });
}

void TrainingCorpus::finish() {
  if (!file_) {
    pairs_ = present_.size();
    target_tokens_ = present_.target_tokens();
    loaded_ = 0;
    return;
  }
  std::string packed;
  for (const Block& block : blocks_) add_part(packed, {reinterpret_cast<const char*>(&block), sizeof block});
  blocks_.clear();
  for (const std::string& bytes : gather_in_turn(ranks_, packed)) {
    Block block;
    std::memcpy(&block, bytes.data(), sizeof block);
    // How many blocks without pairs follow the end of the text depends on the number of ranks.
    if (block.pairs == 0) continue;
    blocks_.push_back(block);
    pairs_ += block.pairs;
    target_tokens_ += block.target_tokens;
  }
  // Each window has at least one block.
  windows_ = std::clamp<std::int64_t>((pairs_ + window_->pairs - 1) / window_->pairs, 1,
                                      std::max<std::int64_t>(1, std::ssize(blocks_)));
  load(0, 0);
}

/// Returns the numbers of all blocks in the order in which an epoch deals them out to its windows.
std::vector<std::int64_t> TrainingCorpus::order_of_blocks(std::int64_t epoch) const {
  std::vector<std::int64_t> numbers(blocks_.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  shuffle(numbers, RandomStream(window_->seed, RandomUse::windows, static_cast<std::uint64_t>(epoch), 0));
  return numbers;
}

/// Returns the part of order_of_blocks() that a window has.
std::span<const std::int64_t> TrainingCorpus::part_of_window(std::span<const std::int64_t> order,
                                                             std::int64_t window) const {
  const std::int64_t begin = std::ssize(order) * window / windows_, end = std::ssize(order) * (window + 1) / windows_;
  return order.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

std::vector<WindowSize> TrainingCorpus::sizes_of_windows(std::int64_t epoch) const {
  if (windows_ == 1) return {{pairs_, target_tokens_}};
  const std::vector<std::int64_t> order = order_of_blocks(epoch);
  std::vector<WindowSize> sizes(static_cast<std::size_t>(windows_));
  for (std::int64_t window = 0; window < windows_; ++window)
    for (const std::int64_t number : part_of_window(order, window)) {
      const Block& block = blocks_[static_cast<std::size_t>(number)];
      sizes[static_cast<std::size_t>(window)].pairs += block.pairs;
      sizes[static_cast<std::size_t>(window)].target_tokens += block.target_tokens;
    }
  return sizes;
}

const ParallelCorpus& TrainingCorpus::load(std::int64_t epoch, std::int64_t window) {
  // One window is the same in every epoch.
  const std::int64_t wanted = windows_ == 1 ? 0 : epoch * windows_ + window;
  if (wanted == loaded_) return present_;
  const std::vector<std::int64_t> order = order_of_blocks(epoch);
  const std::span<const std::int64_t> part = part_of_window(order, window);
  std::vector<std::int64_t> numbers(part.begin(), part.end());
  std::ranges::sort(numbers);
  present_.clear();
  for (std::int64_t first = 0; first < std::ssize(numbers); first += kBlocksReadAtOnce)
    read_blocks({numbers.begin() + first, numbers.begin() + std::min(first + kBlocksReadAtOnce, std::ssize(numbers))});
  loaded_ = wanted;
  return present_;
}

/// Appends blocks to the present window.
void TrainingCorpus::read_blocks(const std::vector<std::int64_t>& numbers) {
  std::string own;
  run_together(ranks_, [&] {
    for (const std::int64_t number : numbers) {
      const Block& block = blocks_[static_cast<std::size_t>(number)];
      if (block.rank != ranks_.rank()) continue;
      const std::size_t before = own.size();
      own.resize(before + static_cast<std::size_t>(block.bytes));
      file_->read(block.offset, std::span(own).subspan(before));
    }
  });
  const std::vector<std::string> all = ranks_.gather(own);
  std::vector<std::size_t> read(all.size());
  for (const std::int64_t number : numbers) {
    const Block& block = blocks_[static_cast<std::size_t>(number)];
    const auto rank = static_cast<std::size_t>(block.rank), bytes = static_cast<std::size_t>(block.bytes);
    present_.append(std::string_view(all[rank]).substr(read[rank], bytes));
    read[rank] += bytes;
  }
}

std::uint64_t TrainingCorpus::fingerprint() const {
  if (!file_) return present_.fingerprint();
  std::uint64_t hash = 0;
  for (const Block& block : blocks_) hash = (hash ^ block.fingerprint) * 0x100000001b3ULL + (hash >> 32);
  return hash;
}

std::int64_t TrainingCorpus::memory() const {
  return present_.memory() + static_cast<std::int64_t>(blocks_.capacity() * sizeof(Block));
}

}  // namespace heed
