#pragma once

#include <cstdint>
#include <string_view>

#include "heed/base/threads.h"
#include "heed/config/fields.h"
#include "heed/data/parallel_corpus.h"
#include "heed/data/parallel_text.h"
#include "heed/text/text_model.h"

namespace heed {

/// The treatment of a sentence pair that has more than max_length tokens on one side: leave out the pair, cut both
/// sides to max_length tokens, or stop with an error.
enum class OnLong { skip, crop, fail };

template <>
struct EnumNames<OnLong> {
  static constexpr std::pair<OnLong, std::string_view> values[] = {
      {OnLong::skip, "skip"}, {OnLong::crop, "crop"}, {OnLong::fail, "fail"}};
};

/// The options of encode_corpus().
struct EncodeOptions {
  int max_length = 256;  ///< largest number of tokens on one side of a pair, `</s>` included
  OnLong on_long = OnLong::skip;
  bool pretokenized = false;  ///< the text is already tokenised: words separated by spaces, not yet subwords
};

/// Counts of what happened to the sentence pairs that encode_corpus() read.
struct CorpusReport {
  std::int64_t pairs = 0;                ///< pairs that were read
  std::int64_t empty = 0;                ///< pairs left out because one side or both have no tokens
  std::int64_t too_long = 0;             ///< pairs left out or cropped because a side was longer than max_length
  Position first_empty, first_too_long;  ///< file and line of the first empty and the first long pair
  std::int64_t source_pieces = 0, target_pieces = 0;    ///< subword tokens of the pairs that were kept
  std::int64_t source_unknown = 0, target_unknown = 0;  ///< pieces of kept pairs that are not in the vocabulary
  std::int64_t source_words = 0, target_words = 0;  ///< words, separated by white space, of the pairs that were kept
  std::int64_t longest_source = 0, longest_target = 0;  ///< tokens of the longest sentence, before cropping

  /// Logs how many pairs were left out or cropped, and how many pieces were unknown. Does not mention counts of 0.
  void tell(Log& log, const EncodeOptions& options) const;
};

/// Reads all sentence pairs of `reader`, encodes both sides to ids on all threads of the pool, and returns the pairs
/// that `options` allow, in input order. `target_lines`, if not null, receives the target text of each pair that was
/// kept. Throws Error if no pair is left, and for a long pair with OnLong::fail.
ParallelCorpus encode_corpus(PairReader& reader, const TextModel& source, const TextModel& target,
                             const EncodeOptions& options, ThreadPool& pool, Log& log, CorpusReport& report,
                             std::vector<std::string>* target_lines = nullptr);

}  // namespace heed
