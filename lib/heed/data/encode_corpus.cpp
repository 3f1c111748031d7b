#include "heed/data/encode_corpus.h"

#include <algorithm>
#include <functional>
#include <span>

#include "heed/base/number_text.h"
#include "heed/data/word_alignment.h"
#include "heed/text/trees/linear_tree.h"

namespace heed {
namespace {

/// The number of blocks that each rank encodes at a time.
constexpr std::int64_t kBlocksAtOnce = 16;

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
  const std::string rule = " (each sentence pair needs its alignment, if only an empty line)";
  if (more)
    throw Error(Position{alignments.name()},
                "has " + count_of(alignments.line_number(), "line") + ", but " + reader.name() + " has more" + rule);
  throw Error(Position{alignments.name()},
              "has more lines than " + reader.name() + ", which has " + count_of(reader.line_number(), "line") + rule);
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

/// Throws Error if the sentence of a tree with `leaves` words has more or fewer tokens than words. `source_words` are
/// the words_of_pieces() of the sentence, and `where` is the place of the tree.
void check_leaves(std::int64_t leaves, std::span<const int> source_words, const Position& where) {
  const std::int64_t tokens = source_words.empty() ? 0 : source_words.back() + 1;
  if (tokens == leaves) return;
  throw Error(where,
              "the source vocabulary makes " + format_count(tokens) + " tokens of the " + format_count(leaves) +
                  " words of this tree, but --guided-alignment leaves needs a token for each word (take a source "
                  "vocabulary of build-vocab --mode leaves)");
}

std::int64_t count_unknown(const std::vector<std::int32_t>& ids) {
  return std::count(ids.begin(), ids.end(), kUnknownId);
}

/// Adds encoded sentence pairs to a corpus, unless a pair is empty or too long, and counts empty and too long pairs in
/// the report.
class Collector {
 public:
  Collector(const CorpusText& text, CorpusReport& report)
      : reader_(text.reader),
        options_(text.options),
        report_(report),
        target_lines_(text.target_lines),
        images_(text.source.steps().mode == TokenMode::images),
        aligned_(text.alignments != nullptr || text.links_to_leaves) {}

  void take(EncodedPair& pair, ParallelCorpus& corpus) {
    ++report_.pairs;
    if (pair.source.empty() || pair.target.empty()) {
      if (report_.empty++ == 0) report_.first_empty = position(pair, pair.source.empty());
      return;
    }
    // The length of an image's path does not count.
    const auto source_tokens = images_ ? 1 : static_cast<std::int64_t>(pair.source.size()) + 1;
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
    corpus.add(pair.source, pair.target, pair.line);
    if (aligned_) corpus.add_links(pair.links);
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
    if (!images_) pair.source.resize(std::min(pair.source.size(), limit));
    pair.target.resize(std::min(pair.target.size(), limit));
    return true;
  }

  const PairReader& reader_;
  const EncodeOptions& options_;
  CorpusReport& report_;
  std::vector<std::string>* target_lines_;
  bool images_;  // whether the sources are paths of images
  bool aligned_;
};

/// Reads a text block by block, and encodes the blocks of this rank: one of every ranks.size() blocks.
class BlockEncoder {
 public:
  BlockEncoder(const CorpusText& text, ThreadPool& pool, CorpusReport& report, const Communicator& ranks)
      : text_(text),
        pool_(pool),
        ranks_(ranks),
        collector_(text, report),
        pairs_(static_cast<std::size_t>(kBlocksAtOnce * TrainingCorpus::kBlockLines)),
        blocks_(static_cast<std::size_t>(kBlocksAtOnce)) {}

  /// Reads and encodes the next blocks. Returns false at the end of the text.
  bool next() {
    bool more = true;
    std::size_t filled = 0;
    std::vector<std::size_t> ends;
    for (std::int64_t block = 0; block < kBlocksAtOnce * ranks_.size(); ++block) {
      const bool own = block % ranks_.size() == ranks_.rank();
      for (std::int64_t line = 0; more && line < TrainingCorpus::kBlockLines; ++line) {
        more = read(own ? pairs_[filled] : other_);
        if (more && own) ++filled;
      }
      if (own) ends.push_back(filled);
    }
    pool_.run([&](int thread) {
      const Slice slice = slice_of(static_cast<std::int64_t>(filled), pool_.size(), thread);
      for (auto i = static_cast<std::size_t>(slice.begin); i < static_cast<std::size_t>(slice.end); ++i)
        encode(pairs_[i]);
    });
    std::size_t i = 0;
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      blocks_[block].clear();
      for (; i < ends[block]; ++i) collector_.take(pairs_[i], blocks_[block]);
    }
    return more;
  }

  /// Returns the blocks of this rank that next() has encoded.
  const std::vector<ParallelCorpus>& blocks() const { return blocks_; }
  /// Returns a hash of all lines that were read, if there are other ranks.
  std::uint64_t hash() const { return hash_; }

 private:
  bool read(EncodedPair& pair) {
    const bool more = text_.reader.next(pair.text);
    if (text_.alignments) read_alignment(*text_.alignments, more, text_.reader, pair.alignment);
    if (!more) return false;
    pair.line = text_.reader.line_number();
    if (ranks_.size() > 1)
      for (const std::string& part : {pair.text.source, pair.text.target, pair.alignment})
        hash_ = (hash_ ^ std::hash<std::string>()(part)) * 0x100000001b3ULL + (hash_ >> 32);
    return true;
  }

  void encode(EncodedPair& pair) const {
    const std::string from = tokens_of(text_.source, pair.text.source, text_.reader.source_position(), pair.line);
    const std::string to = tokens_of(text_.target, pair.text.target, text_.reader.target_position(), pair.line);
    pair.source = text_.source.encode_tokens(from);
    pair.target = text_.target.encode_tokens(to);
    pair.links.clear();
    // The Collector leaves such a pair out.
    const bool empty = pair.source.empty() || pair.target.empty();
    if (text_.target.steps().mode == TokenMode::trees && !text_.options.pretokenized && !empty)
      check_tree_words(pair.text.source, pair.text.target, {text_.reader.target_position().file, pair.line});
    if (text_.target.steps().mode == TokenMode::labels && count_unknown(pair.target) > 0)
      throw Error({text_.reader.target_position().file, pair.line},
                  "the label '" + pair.text.target + "' is not among the " +
                      format_count(text_.target.size() - kReservedIds) +
                      " labels that the model knows (those of the training text, or of -v)");
    if (text_.alignments || (text_.links_to_leaves && !empty)) pair.links = links_of(pair, from, to);
  }

  /// Returns the links of the pieces that remain of a pair with the tokens `from` and `to`. A pair that is left out
  /// because it is too long has no links: a long word of each side would have very many. But its alignment is checked.
  std::vector<PieceLink> links_of(const EncodedPair& pair, const std::string& from, const std::string& to) const {
    const std::vector<int> source_words = words_of_pieces(text_.source, from),
                           target_words = words_of_pieces(text_.target, to);
    const EncodeOptions& options = text_.options;
    const std::int32_t limit = options.max_length - 1;
    const bool too_long = std::max(std::ssize(pair.source), std::ssize(pair.target)) > limit;
    const std::int32_t most = too_long && options.on_long != OnLong::crop ? 0 : limit;
    if (text_.alignments)
      return piece_links(pair.alignment, source_words, target_words, {text_.alignments->name(), pair.line}, most);
    std::vector<AlignmentLink> links = links_to_leaves(to);
    check_leaves(links.back().source + 1, source_words, {text_.reader.target_position().file, pair.line});
    return piece_links(std::move(links), source_words, target_words, most);
  }

  std::string tokens_of(const TextModel& model, const std::string& line, const Position& where,
                        std::int64_t number) const {
    if (text_.options.pretokenized) return line;
    try {
      return model.tokens_of(line);
    } catch (const LineError& error) {
      throw error.at(where.file, number, line);
    }
  }

  const CorpusText& text_;
  ThreadPool& pool_;
  const Communicator& ranks_;
  Collector collector_;
  std::vector<EncodedPair> pairs_;
  EncodedPair other_;  // a pair of another rank
  std::vector<ParallelCorpus> blocks_;
  std::uint64_t hash_ = 0;
};

}  // namespace

std::uint64_t encode_corpus(const CorpusText& text, ThreadPool& pool, Log& log, CorpusReport& report,
                            TrainingCorpus& corpus, Communicator& ranks) {
  BlockEncoder encoder(text, pool, report, ranks);
  PairReader& reader = text.reader;
  {
    Progress progress(log, "reading " + reader.name(), "pairs", [&] { return reader.share(); });
    for (bool more = true; more;) {
      run_together(ranks, [&] { more = encoder.next(); });
      // Ctrl-C also ends the program that writes the text to a pipe, so that the text may be incomplete at its end.
      if (ranks.any(text.interrupts && text.interrupts->signal() != 0)) throw Interrupted();
      corpus.add(encoder.blocks());
      progress.to(reader.line_number());
      // A rank whose file is longer than the others' reads on, and is found out by its hash.
      more = ranks.any(more);
    }
  }
  reader.report(log);
  report.text = reader.name();
  report.invalid_lines = reader.invalid_lines();
  report.first_invalid_line = reader.first_invalid_line();
  report.add_up(ranks);
  corpus.finish();
  run_together(ranks, [&] {
    if (report.pairs == 0) throw Error(Position{reader.name()}, "is empty (sentence pairs are needed)");
    if (corpus.pairs() == 0)
      throw Error(Position{reader.name()}, "no pair is left of " + format_count(report.pairs) + ": " +
                                               format_count(report.empty) + " empty, " + format_count(report.too_long) +
                                               " too long" + (report.too_long > 0 ? " (raise --max-length)" : ""));
  });
  return encoder.hash();
}

ParallelCorpus encode_corpus(const CorpusText& text, ThreadPool& pool, Log& log, CorpusReport& report) {
  TrainingCorpus corpus(no_other_ranks());
  encode_corpus(text, pool, log, report, corpus, no_other_ranks());
  return corpus.present();
}

void CorpusReport::add_up(Communicator& ranks) {
  std::int64_t* const counts[] = {&pairs,          &empty,          &too_long,     &source_pieces, &target_pieces,
                                  &source_unknown, &target_unknown, &source_words, &target_words};
  std::vector<std::int64_t> sums;
  for (const std::int64_t* count : counts) sums.push_back(*count);
  heed::add_up(ranks, sums);
  for (std::size_t i = 0; i < sums.size(); ++i) *counts[i] = sums[i];
  for (std::int64_t* longest : {&longest_source, &longest_target}) *longest = ranks.largest(*longest);
  for (Position* first : {&first_empty, &first_too_long}) {
    const std::vector<std::string> files = ranks.gather(first->file), lines = ranks.gather(std::to_string(first->line));
    for (std::size_t r = 0; r < files.size(); ++r)
      if (const std::int64_t line = std::stoll(lines[r]); line > 0 && (first->line == 0 || line < first->line))
        *first = {files[r], line};
  }
}

void CorpusReport::tell(Log& log, const EncodeOptions& options) const {
  if (empty > 0)
    log.warn(first_empty.text() + ": an empty line; pairs left out because a side is empty: " + format_count(empty) +
             " of " + format_count(pairs));
  if (too_long > 0)
    log.warn(first_too_long.text() + ": longer than " + std::to_string(options.max_length) + " tokens; such pairs " +
             (options.on_long == OnLong::skip ? "left out: " : "cropped: ") + format_count(too_long) + " of " +
             format_count(pairs) + " (longest: " + format_count(longest_source) + " and " +
             format_count(longest_target) + " tokens; " + options.limited_by + ")");
  const auto tell_unknown = [&](const char* side, std::int64_t unknown, std::int64_t pieces) {
    if (unknown == 0) return;
    const std::string share = number_text("%.2f %%", 100 * static_cast<double>(unknown) / static_cast<double>(pieces));
    log.info(text + ": " + side + " pieces that the vocabulary does not know: " + format_count(unknown) + " of " +
             format_count(pieces) + " (" + share + ")");
  };
  tell_unknown("source", source_unknown, source_pieces);
  tell_unknown("target", target_unknown, target_pieces);
}

}  // namespace heed
