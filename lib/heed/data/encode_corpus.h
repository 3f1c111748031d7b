#pragma once

#include <cstdint>
#include <string_view>

#include "heed/base/threads.h"
#include "heed/config/fields.h"
#include "heed/data/parallel_corpus.h"
#include "heed/data/parallel_text.h"
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
};

/// Counts of what happened to the sentence pairs that encode_corpus() read.
struct CorpusReport {
  std::int64_t pairs = 0;     ///< number of sentence pairs that were read
  std::int64_t empty = 0;     ///< number of pairs left out because one side or both have no tokens
  std::int64_t too_long = 0;  ///< number of pairs left out or cropped because a side was longer than max_length
  /// The file and the line of the first empty pair, and of the first pair that was too long.
  Position first_empty, first_too_long;
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
};

/// Reads all sentence pairs of `reader`, encodes both sides to token ids on all threads of the pool, and returns the
/// pairs that `options` allow, in input order. `target_lines`, if not null, receives the target text of each pair that
/// was kept. `alignments`, if not null, reads the word alignment of each pair, one on each line (see piece_links()).
/// Throws Error if no pair is left, if there are more or fewer alignments than pairs, or if an alignment does not fit
/// its pair; also throws Error for a pair that is too long if options.on_long is OnLong::fail.
ParallelCorpus encode_corpus(PairReader& reader, const TextModel& source, const TextModel& target,
                             const EncodeOptions& options, ThreadPool& pool, Log& log, CorpusReport& report,
                             std::vector<std::string>* target_lines = nullptr, LineReader* alignments = nullptr);

}  // namespace heed
