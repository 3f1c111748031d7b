#include "heed/data/encode_corpus.h"

#include <algorithm>
#include <cstdio>

#include "heed/data/word_alignment.h"

namespace heed {
namespace {

/// encode_corpus() repeatedly reads some sentence pairs and then encodes them on all threads. This constant times the
/// number of threads is the number of pairs that are read at a time.
constexpr std::size_t kPairsPerThread = 2048;

/// A sentence pair as text and as ids, and the pair's line number in the input, from 1.
struct EncodedPair {
  TextPair text;
  std::vector<std::int32_t> source, target;
  std::int64_t line = 0;
  /// The line of the pair's word alignment and what it says, if the corpus has alignments.
  std::string alignment = {};
  std::vector<PieceLink> links = {};
};

/// Reads the alignment of a pair, or at the end of the pairs, where `more` is false, checks that there are no more
/// alignments. Throws Error where the alignments do not end with the pairs.
void read_alignment(LineReader& alignments, bool more, const PairReader& reader, std::string& line) {
  if (alignments.next(line) == more) return;
  const auto lines = [](std::int64_t count) { return format_count(count) + (count == 1 ? " line" : " lines"); };
  const std::string rule = " (each sentence pair needs its alignment, if only an empty line)";
  if (more)
    throw Error(Position{alignments.name()},
                "has " + lines(alignments.line_number()) + ", but " + reader.name() + " has more" + rule);
  throw Error(Position{alignments.name()},
              "has more lines than " + reader.name() + ", which has " + lines(reader.line_number()) + rule);
}

/// Returns the number of words, separated by white space, in a line.
std::int64_t count_words(std::string_view text) {
  std::int64_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
    words += !space && !inside;
    inside = !space;
  }
  return words;
}

std::int64_t count_unknown(const std::vector<std::int32_t>& ids) {
  return std::count(ids.begin(), ids.end(), kUnknownId);
}

/// Adds encoded sentence pairs to the corpus, unless a pair is empty or too long, and counts empty and too long pairs
/// in the report.
class Collector {
 public:
  Collector(const PairReader& reader, const EncodeOptions& options, ParallelCorpus& corpus, CorpusReport& report,
            std::vector<std::string>* target_lines, bool aligned)
      : reader_(reader),
        options_(options),
        corpus_(corpus),
        report_(report),
        target_lines_(target_lines),
        aligned_(aligned) {}

  void take(EncodedPair& pair) {
    ++report_.pairs;
    if (pair.source.empty() || pair.target.empty()) {
      if (report_.empty++ == 0) report_.first_empty = position(pair, pair.source.empty());
      return;
    }
    const auto source_tokens = static_cast<std::int64_t>(pair.source.size()) + 1;
    const auto target_tokens = static_cast<std::int64_t>(pair.target.size()) + 1;
    report_.longest_source = std::max(report_.longest_source, source_tokens);
    report_.longest_target = std::max(report_.longest_target, target_tokens);
    if (std::max(source_tokens, target_tokens) > options_.max_length && !take_long(pair, source_tokens, target_tokens))
      return;
    report_.source_pieces += static_cast<std::int64_t>(pair.source.size());
    report_.target_pieces += static_cast<std::int64_t>(pair.target.size());
    report_.source_unknown += count_unknown(pair.source);
    report_.target_unknown += count_unknown(pair.target);
    report_.source_words += count_words(pair.text.source);
    report_.target_words += count_words(pair.text.target);
    corpus_.add(pair.source, pair.target, pair.line);
    if (aligned_) corpus_.add_links(pair.links);
    if (target_lines_) target_lines_->push_back(pair.text.target);
  }

 private:
  /// Returns the file and the line of a sentence pair's source (if `source` is true) or target.
  Position position(const EncodedPair& pair, bool source) const {
    return {(source ? reader_.source_position() : reader_.target_position()).file, pair.line};
  }

  /// Handles a sentence pair with more than max_length tokens on a side, as options_.on_long says: crops the pair and
  /// returns true; or returns false, so that the pair is left out; or throws Error.
  bool take_long(EncodedPair& pair, std::int64_t source_tokens, std::int64_t target_tokens) {
    const Position where = position(pair, source_tokens > options_.max_length);
    if (options_.on_long == OnLong::fail)
      throw Error(where, std::to_string(std::max(source_tokens, target_tokens)) + " tokens with </s>, more than " +
                             std::to_string(options_.max_length) +
                             " (raise --max-length, or leave such pairs out with --on-long skip)");
    if (report_.too_long++ == 0) report_.first_too_long = where;
    if (options_.on_long == OnLong::skip) return false;
    const auto limit = static_cast<std::size_t>(options_.max_length - 1);
    pair.source.resize(std::min(pair.source.size(), limit));
    pair.target.resize(std::min(pair.target.size(), limit));
    return true;
  }

  const PairReader& reader_;
  const EncodeOptions& options_;
  ParallelCorpus& corpus_;
  CorpusReport& report_;
  std::vector<std::string>* target_lines_;
  bool aligned_;
};

}  // namespace

ParallelCorpus encode_corpus(PairReader& reader, const TextModel& source, const TextModel& target,
                             const EncodeOptions& options, ThreadPool& pool, Log& log, CorpusReport& report,
                             std::vector<std::string>* target_lines, LineReader* alignments) {
  ParallelCorpus corpus;
  Collector collector(reader, options, corpus, report, target_lines, alignments != nullptr);
  Progress progress(log, "reading " + reader.name(), "pairs", [&] { return reader.share(); });
  std::vector<EncodedPair> chunk(kPairsPerThread * static_cast<std::size_t>(pool.size()));
  for (bool more = true; more;) {
    std::size_t filled = 0;
    while (more && filled < chunk.size()) {
      more = reader.next(chunk[filled].text);
      if (alignments) read_alignment(*alignments, more, reader, chunk[filled].alignment);
      if (more) chunk[filled++].line = reader.line_number();
    }
    pool.run([&](int thread) {
      const Slice slice = slice_of(static_cast<std::int64_t>(filled), pool.size(), thread);
      for (auto i = static_cast<std::size_t>(slice.begin); i < static_cast<std::size_t>(slice.end); ++i) {
        EncodedPair& pair = chunk[i];
        const std::string from = options.pretokenized ? pair.text.source : source.tokens_of(pair.text.source);
        const std::string to = options.pretokenized ? pair.text.target : target.tokens_of(pair.text.target);
        pair.source = source.encode_tokens(from);
        pair.target = target.encode_tokens(to);
        if (!alignments) continue;
        pair.links = piece_links(pair.alignment, words_of_pieces(source, from), words_of_pieces(target, to),
                                 {alignments->name(), pair.line});
      }
    });
    for (std::size_t i = 0; i < filled; ++i) collector.take(chunk[i]);
    progress.to(report.pairs);
  }
  reader.report(log);
  if (report.pairs == 0) throw Error(Position{reader.name()}, "is empty (sentence pairs are needed)");
  if (corpus.size() == 0)
    throw Error(Position{reader.name()}, "no pair is left of " + format_count(report.pairs) + ": " +
                                             format_count(report.empty) + " empty, " + format_count(report.too_long) +
                                             " too long (raise --max-length)");
  return corpus;
}

void CorpusReport::tell(Log& log, const EncodeOptions& options) const {
  if (empty > 0)
    log.warn(first_empty.text() + ": an empty line; pairs left out because a side is empty: " + format_count(empty) +
             " of " + format_count(pairs));
  if (too_long > 0)
    log.warn(first_too_long.text() + ": longer than " + std::to_string(options.max_length) + " tokens; such pairs " +
             (options.on_long == OnLong::skip ? "left out: " : "cropped: ") + format_count(too_long) + " of " +
             format_count(pairs) + " (longest: " + format_count(longest_source) + " and " +
             format_count(longest_target) + " tokens; --max-length, --on-long)");
  const auto tell_unknown = [&](const char* side, std::int64_t unknown, std::int64_t pieces) {
    if (unknown == 0) return;
    char share[32];
    std::snprintf(share, sizeof share, "%.2f %%", 100 * static_cast<double>(unknown) / static_cast<double>(pieces));
    log.info(std::string(side) + " pieces that the vocabulary does not know: " + format_count(unknown) + " of " +
             format_count(pieces) + " (" + share + ")");
  };
  tell_unknown("source", source_unknown, source_pieces);
  tell_unknown("target", target_unknown, target_pieces);
}

}  // namespace heed
