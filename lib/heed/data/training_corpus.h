#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/base/scratch_file.h"
#include "heed/data/parallel_corpus.h"
#include "heed/dist/communicator.h"

namespace heed {

/// How a corpus larger than the memory is kept on disk.
struct ShuffleWindow {
  std::int64_t pairs = 0;  ///< about how many sentence pairs are in memory and shuffled together
  std::string folder;      ///< the folder of the temporary file
  std::uint64_t seed = 1;
};

/// The numbers of sentence pairs of a window, and of their target tokens, including one `</s>` for each pair.
struct WindowSize {
  std::int64_t pairs = 0, target_tokens = 0;
};

/// The sentence pairs that ranks learn from together. Without a ShuffleWindow, all ranks have all pairs in memory, in
/// one window.
///
/// With a ShuffleWindow, each rank has some blocks of kBlockLines lines in a temporary file. An epoch consists of
/// windows of about ShuffleWindow::pairs sentence pairs. The blocks are shuffled in each epoch and dealt out to the
/// windows, so that a window has blocks from everywhere in the text; the ranks send each other the blocks of the window
/// that they load. The pairs of a window are in the order of the text: if all pairs fit in one window, it is the window
/// that a corpus in memory has.
class TrainingCorpus final : public ParallelWindows {
 public:
  static constexpr std::int64_t kBlockLines = 1024;

  explicit TrainingCorpus(Communicator& ranks, const std::optional<ShuffleWindow>& window = std::nullopt);

  /// Adds blocks to the corpus. The blocks of the text are dealt out to the ranks in turn: with n ranks, rank r passes
  /// the blocks r, r + n, r + 2 n, ... of those that follow the blocks of earlier calls. All ranks must pass the same
  /// number of blocks. Collective, like finish() and load().
  void add(const std::vector<ParallelCorpus>& blocks);
  /// Completes the corpus and loads the first window of the first epoch.
  void finish();
  const ParallelCorpus& load(std::int64_t epoch, std::int64_t window) override;

  std::int64_t windows() const override { return windows_; }
  /// Returns the size of each window of an epoch, without loading the windows.
  std::vector<WindowSize> sizes_of_windows(std::int64_t epoch) const;
  /// Returns the window that was loaded last.
  const ParallelCorpus& present() const { return present_; }
  /// Returns the number of all sentence pairs.
  std::int64_t pairs() const { return pairs_; }
  /// Returns the number of target tokens of all sentence pairs, including one `</s>` for each pair.
  std::int64_t target_tokens() const { return target_tokens_; }
  /// Returns a hash of all pairs. The same pairs have different hashes with and without a ShuffleWindow.
  std::uint64_t fingerprint() const;
  /// Returns the number of bytes of memory that the corpus takes.
  std::int64_t memory() const;

 private:
  struct Block {
    std::int64_t offset = 0, bytes = 0, rank = 0, pairs = 0, target_tokens = 0;
    std::uint64_t fingerprint = 0;
  };

  std::vector<std::int64_t> order_of_blocks(std::int64_t epoch) const;
  std::span<const std::int64_t> part_of_window(std::span<const std::int64_t> order, std::int64_t window) const;
  void read_blocks(const std::vector<std::int64_t>& numbers);

  Communicator& ranks_;
  std::optional<ShuffleWindow> window_;
  std::optional<ScratchFile> file_;
  std::vector<Block> blocks_;  // this rank's; after finish(), those of all ranks that have pairs
  std::int64_t windows_ = 1, pairs_ = 0, target_tokens_ = 0;
  ParallelCorpus present_;
  std::int64_t loaded_ = -1;  // epoch * windows_ + window of present_
};

}  // namespace heed
