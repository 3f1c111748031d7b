#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/signals.h"
#include "heed/base/threads.h"
#include "heed/config/fields.h"
#include "heed/data/parallel_corpus.h"
#include "heed/data/parallel_text.h"
#include "heed/data/training_corpus.h"
#include "heed/text/text_model.h"

namespace heed {

/// The treatment of a sentence pair that has more than max_length tokens on one side: `skip` leaves out the pair,
/// `crop` cuts both sides to max_length tokens, `fail` stops with an error.
enum class OnLong { skip, crop, fail };

template <>
struct EnumNames<OnLong> {
  static constexpr std::pair<OnLong, std::string_view> values[] = {
      {OnLong::skip, "skip"}, {OnLong::crop, "crop"}, {OnLong::fail, "fail"}};
};

/// The options of encode_corpus().
struct EncodeOptions {
  int max_length = 256;  ///< largest number of tokens on one side of a sentence pair, `</s>` included
  OnLong on_long = OnLong::skip;
  /// Whether the text is already tokenised: words separated by spaces, which are not yet split into subwords.
  bool pretokenized = false;
  /// The options of train that decide max_length and on_long, for a message.
  std::string limited_by = "--max-length, --on-long";
};

/// Counts of what happened to the sentence pairs that encode_corpus() read.
struct CorpusReport {
  std::string text;           ///< the name of the text, for messages
  std::int64_t pairs = 0;     ///< number of sentence pairs that were read
  std::int64_t empty = 0;     ///< number of pairs left out because one side or both have no tokens
  std::int64_t too_long = 0;  ///< number of pairs left out or cropped because a side was longer than max_length
  /// The file and the line of the first empty pair, and of the first pair that was too long.
  Position first_empty, first_too_long;
  /// The number of lines with invalid UTF-8 in the source and the target, and the number of the first such line.
  std::int64_t invalid_lines = 0, first_invalid_line = 0;
  /// The numbers of subwords in the pairs that were kept.
  std::int64_t source_pieces = 0, target_pieces = 0;
  /// The numbers of subwords that are not in the vocabulary, in the pairs that were kept.
  std::int64_t source_unknown = 0, target_unknown = 0;
  /// The numbers of words, separated by white space, in the pairs that were kept.
  std::int64_t source_words = 0, target_words = 0;
  /// The numbers of tokens, `</s>` included, of the longest sentences that were read, before cropping.
  std::int64_t longest_source = 0, longest_target = 0;

  /// Logs how many sentence pairs were left out or cropped, and how many subwords were not in the vocabulary. Does not
  /// mention counts of 0.
  void tell(Log& log, const EncodeOptions& options) const;
  /// Adds the counts of all ranks, each of which has reported on other lines; only the lines with invalid UTF-8 are
  /// those of the whole text, which each rank has read.
  void add_up(Communicator& ranks);
};

/// The text that is encoded, and what encodes it.
struct CorpusText {
  PairReader& reader;
  const TextModel &source, &target;
  EncodeOptions options = {};
  /// If not null, reads the word alignment of each pair, one on each line (see piece_links()).
  LineReader* alignments = nullptr;
  /// Whether the targets are trees, and each pair's alignment is links_to_leaves(). Each word of a tree must be one
  /// token of the source.
  bool links_to_leaves = false;
  /// If not null, receives the target text of each pair that was kept.
  std::vector<std::string>* target_lines = nullptr;
  /// If not null, a signal that it has caught ends the reading.
  const InterruptGuard* interrupts = nullptr;
};

/// Reads all sentence pairs of a text and encodes both sides to token ids on all threads of the pool. Returns the pairs
/// that the options allow, in input order. Throws Error if no pair is left, if there are more or fewer alignments than
/// pairs, if an alignment does not fit its pair, or if links_to_leaves does not fit the source's tokens; also throws
/// Error for a pair that is too long if on_long is OnLong::fail. Throws Interrupted if a signal has come; the text is
/// read in parts of 16 blocks of 1,024 lines for each rank, and signals are looked for after each part.
ParallelCorpus encode_corpus(const CorpusText& text, ThreadPool& pool, Log& log, CorpusReport& report);

/// Does the same with all ranks together: every rank reads the text, and encodes its share of the blocks for `corpus`.
/// The report is about the pairs of all ranks, and a signal to one rank ends the reading on all. Returns a hash of the
/// text that this rank has read, or 0 if there are no other ranks.
std::uint64_t encode_corpus(const CorpusText& text, ThreadPool& pool, Log& log, CorpusReport& report,
                            TrainingCorpus& corpus, Communicator& ranks);

}  // namespace heed
