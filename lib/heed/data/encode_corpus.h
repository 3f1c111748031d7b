#pragma once

#include <cstdint>
#include <string_view>

#include "heed/base/threads.h"
#include "heed/config/fields.h"
#include "heed/data/parallel_corpus.h"
#include "heed/data/parallel_text.h"
#include "heed/text/text_model.h"

namespace heed {

/// What to do with a pair of which one side is longer than the model takes.
enum class OnLong { skip, crop, fail };

template <>
struct EnumNames<OnLong> {
  static constexpr std::pair<OnLong, std::string_view> values[] = {
      {OnLong::skip, "skip"}, {OnLong::crop, "crop"}, {OnLong::fail, "fail"}};
};

struct EncodeOptions {
  int max_length = 256;  ///< tokens of a side, `</s>` included
  OnLong on_long = OnLong::skip;
  bool pretokenized = false;  ///< lines are first-stage tokens separated by spaces
};

/// What became of the pairs that were read.
struct CorpusReport {
  std::int64_t pairs = 0;     ///< read
  std::int64_t empty = 0;     ///< left out: nothing on one side or both
  std::int64_t too_long = 0;  ///< left out or cropped, as OnLong says
  Position first_empty, first_too_long;
  std::int64_t source_pieces = 0, target_pieces = 0;    ///< in what was kept
  std::int64_t source_unknown = 0, target_unknown = 0;  ///< of them `<unk>`
  std::int64_t source_words = 0, target_words = 0;      ///< separated by white space, in what was kept
  std::int64_t longest_source = 0, longest_target = 0;  ///< tokens, before leaving out or cropping

  /// Says what was left out, cropped or unknown; nothing where nothing was.
  void tell(Log& log, const EncodeOptions& options) const;
};

/// Encodes all pairs, on all threads, in order; `target_lines`, where given, gets the target text of those kept. Throws
/// Error where nothing is left.
ParallelCorpus encode_corpus(PairReader& reader, const TextModel& source, const TextModel& target,
                             const EncodeOptions& options, ThreadPool& pool, Log& log, CorpusReport& report,
                             std::vector<std::string>* target_lines = nullptr);

}  // namespace heed
