#include "heed/run/translate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>

#include "heed/base/error.h"
#include "heed/base/line_io.h"
#include "heed/base/streams.h"
#include "heed/base/thread_team.h"
#include "heed/base/threads.h"
#include "heed/checkpoint/integrity.h"
#include "heed/data/image_corpus.h"
#include "heed/decode/coverage.h"
#include "heed/decode/decoder.h"
#include "heed/decode/force.h"
#include "heed/decode/hypotheses.h"
#include "heed/decode/parse.h"
#include "heed/decode/score_rules.h"
#include "heed/decode/translator.h"
#include "heed/run/device_choice.h"
#include "heed/run/first_bad_line.h"
#include "heed/run/partial_output.h"
#include "heed/run/peer_options.h"
#include "heed/run/ranks.h"
#include "heed/run/translate_batches.h"
#include "heed/run/translate_checks.h"
#include "heed/run/translate_images.h"
#include "heed/run/translate_input.h"
#include "heed/run/translate_output.h"
#include "heed/run/translate_stats.h"
#include "heed/tensor/memory.h"
#include "heed/text/strings/unicode.h"
#include "heed/text/strings/vocabulary.h"
#include "heed/text/trees/linear_tree.h"

namespace heed {
namespace {

class TranslateRun {
 public:
  /// `gpu` is the number of the GPU that this rank computes on, if any. `partial` is the output with --resume, on rank
  /// 0, and otherwise null.
  TranslateRun(const TranslateOptions& options, std::istream& in, Rank& self, std::optional<int> gpu,
               PartialOutput* partial)
      : options_(options),
        ranks_(self.ranks),
        partial_(partial),
        out_(partial ? partial->stream() : self.out),
        log_(self.log),
        format_(make_format(options)),
        scoring_(!options.score.empty()),
        input_(options, in, ranks_, thread_count(options.threads), gpu.has_value()),
        translator_({options.models, options.shortlist, options.draft_model}, options.precision,
                    thread_count(options.threads), gpu),
        search_(options.search),
        longest_(options.max_length > 0 ? static_cast<std::size_t>(options.max_length) : kNoLimit),
        pool_(thread_count(options.threads)),
        stats_(options, translator_, ranks_, pool_, log_) {
    check_options(options, translator_);
    if (const ImageInput* images = translator_.image_input()) {
      images_.emplace(*images, options.input, input_.name(), options.on_bad_image, bad_line_, ranks_.rank());
      longest_ = kNoLimit;
    }
    if (translator_.target().steps().mode == TokenMode::trees) {
      if (!is_given(options.given, "max-output-length")) search_.max_output_length = std::numeric_limits<int>::max();
      trees_.emplace(translator_.target().vocabulary());
    }
    if (const auto most = translator_.longest_sequence()) limit_lengths(*most);
    if (translator_.shortlist()) warn_of_foreign_lines(*translator_.shortlist());
    tell_of_byte_order_mark(options.shortlist, log_);
    const int of_gpu = images_ ? kDecodersOfGpuWithImages : kDecodersOfGpu;
    const int decoders = translator_.gpu() ? std::min(pool_.size(), of_gpu) : pool_.size();
    for (int i = 0; i < decoders; ++i) decoders_.push_back(make_decoder());
  }

  int run() {
    const auto start = std::chrono::steady_clock::now();
    if (ranks_.rank() == 0 && !input_.typed())
      progress_.emplace(log_, scoring_ ? "scoring" : "translating", "lines",
                        [this] { return input_.share_done(part_done()); });
    if (options_.resume) go_on();
    while (input_.read(lines_)) {
      translate_chunk();
      write_chunk();
      done_ += input_.size();
      if (input_.failed()) break;
    }
    progress_.reset();
    add_up_ranks();
    input_.report(log_);
    if (long_lines_ > 0) warn_of_long_lines();
    if (images_) images_->report(log_);
    run_on_first(ranks_, [&] { input_.rethrow(); });
    stats_.note_unused_draft(done_);
    if (options_.stats) stats_.report(done_, seconds_since(start), team_ ? &*team_ : nullptr);
    return 0;
  }

 private:
  using Line = TranslateLine;

  // How many threads translate on a GPU: while the GPU computes for some of them, others search, or read images.
  static constexpr int kDecodersOfGpu = 3, kDecodersOfGpuWithImages = 8;
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  Decoder make_decoder() {
    if (translator_.is_parallel()) return Decoder(translator_.parallel_model());
    return Decoder(stats_.step_model(), translator_.classifies());
  }

  /// Limits the lengths of source lines and translations for models with learned or fixed positions: no sequence may
  /// have more than `most` tokens, `</s>` included.
  void limit_lengths(int most) {
    longest_ = std::min(longest_, static_cast<std::size_t>(most - 1));
    search_.limit_sequences(most);
    if (search_.min_output_length > search_.max_output_length)
      throw UsageError("--min-output-length " + std::to_string(search_.min_output_length) +
                       " is more than the model's " + std::to_string(most) + " positions allow");
  }

  void warn_of_foreign_lines(const Shortlist& list) {
    if (list.foreign_lines() > 0)
      log_.warn(list.first_foreign().text() + ": the model has no such piece; " + format_count(list.foreign_lines()) +
                " of " + format_count(list.lines()) + " such lines of the shortlist are left out");
  }

  void warn_of_long_lines() {
    const bool emptied = options_.on_long == OverlongLine::empty || (trees_ && !scoring_);
    const char* done = emptied                                  ? "left empty"
                       : options_.on_long == OverlongLine::copy ? "copied"
                       : scoring_                               ? "only the beginning was scored"
                                                                : "only the beginning was translated";
    const Position first{is_reference(first_long_) ? input_.reference_name() : input_.name(), first_long_ / 2};
    log_.warn(first.text() + ": a line of more than " + std::to_string(longest_) + " pieces, " + done +
              "; such lines: " + std::to_string(long_lines_) + " (--max-length and --on-long decide)");
  }

  /// Draws the progress line. Called on the main thread only, while other threads may translate.
  void show_progress() {
    if (progress_) progress_->to(done_ + std::llround(part_done() * static_cast<double>(input_.size())));
  }

  /// Returns which fraction of the chunk this rank has translated.
  double part_done() const {
    return lines_.empty() ? 1 : static_cast<double>(finished_) / static_cast<double>(lines_.size());
  }

  /// Translates the lines of the chunk, on all ranks. The output of each line is in lines_ then.
  void translate_chunk() {
    run_together(ranks_, [&] { encode_all(); });
    end_at_bad_line();
    const auto begin = std::chrono::steady_clock::now();
    run_together(ranks_, [&] { translate_all(); });
    end_at_bad_line();
    stats_.end_chunk(seconds_since(begin), is_alone());
  }

  /// Returns the outputs of all lines of the chunk, in order.
  std::vector<std::string> gather_outputs() {
    std::string own;
    for (const Line& line : lines_) {
      add_part(own, std::to_string(line.number));
      add_part(own, line.output);
    }
    std::vector<std::pair<std::int64_t, std::string>> found;
    for (const std::string& text : ranks_.gather(own))
      for (std::string_view rest = text; !rest.empty();) {
        const std::int64_t number = std::stoll(std::string(take_part(rest)));
        found.emplace_back(number, take_part(rest));
      }
    std::ranges::sort(found);
    std::vector<std::string> out;
    for (auto& [number, output] : found) out.push_back(std::move(output));
    return out;
  }

  void write_chunk() {
    const std::vector<std::string> outputs = gather_outputs();
    run_on_first(ranks_, [&] {
      for (const std::string& output : outputs) out_ << output;
      out_.flush();
    });
  }

  /// Goes on after the lines whose translations are in the file of an earlier job. Translates the first and the last of
  /// these lines again, and throws Error if their translations are others, because the file belongs to another job
  /// then.
  void go_on() {
    const std::int64_t done = partial_ ? partial_->done() : 0;
    input_.skip(done, partial_ ? partial_->name() : "", lines_);
    const std::int64_t long_lines = long_lines_;
    if (input_.size() > 0) translate_chunk();
    const std::vector<std::string> outputs = gather_outputs();
    run_on_first(ranks_, [&] {
      if (done > 0 &&
          (input_.failed() || outputs.front() != partial_->first_output() || outputs.back() != partial_->last_output()))
        throw Error(
            Position{partial_->name()},
            "does not have what these options and models write for line " +
                std::string(!input_.failed() && outputs.front() == partial_->first_output() ? "" : "1 or ") +
                std::to_string(done) + " of " + input_.name() +
                " (give the options of the job that was killed, and its --device, or remove the file to begin again)");
      partial_->cut();
    });
    long_lines_ = long_lines;
    first_long_ = FirstBadLine::kNone;
    if (images_) images_->forget();
    stats_.forget_pieces();
    if (done > 0) log_.info(partial_->name() + ": goes on after line " + format_count(done));
  }

  /// Adds up what the ranks have done.
  void add_up_ranks() {
    stats_.add_up_ranks();
    std::int64_t numbers[] = {long_lines_};
    add_up(ranks_, numbers);
    long_lines_ = numbers[0];
    first_long_ = ranks_.smallest(first_long_);
    if (images_) images_->add_up(ranks_);
  }

  std::vector<std::int32_t> encode(const TextModel& model, const std::string& text, const std::string& file,
                                   std::int64_t number) const {
    if (is_blank(text)) return {};
    try {
      return options_.pretokenized ? model.encode_tokens(text) : model.encode(text);
    } catch (const LineError& error) {
      throw error.at(file, number, text);
    }
  }

  void encode(Line& line) const {
    // Images are read batch by batch, so that they take little memory.
    if (!images_) line.source = encode(translator_.source(), line.text, input_.name(), line.number);
    if (!scoring_) return;
    line.target = encode(translator_.target(), line.reference, input_.reference_name(), line.number);
    if (trees_ && !options_.pretokenized && !line.source.empty() && !line.target.empty())
      check_tree_words(line.text, line.reference, {input_.reference_name(), line.number});
    if (translator_.classifies() && !is_empty(line))
      line.label =
          class_of_label(line.target, line.reference, options_.models.front(), {input_.reference_name(), line.number});
  }

  void encode_all() {
    pool_.run([&](int thread) {
      for (std::size_t i = static_cast<std::size_t>(thread); i < lines_.size();
           i += static_cast<std::size_t>(pool_.size())) {
        Line& line = lines_[i];
        try {
          encode(line);
        } catch (const Error& error) {
          bad_line_.add(line.number, error.what());
        }
      }
    });
    for (Line& line : lines_) {
      if (is_long(line)) {
        if (options_.on_long == OverlongLine::fail)
          bad_line_.add(line.number, too_long(line).what());
        else
          shorten(line);
      } else if (is_empty(line) && (images_ || !scoring_)) {
        settle(line, "");
      }
    }
  }

  bool is_empty(const Line& line) const { return images_ ? is_blank(line.text) : line.source.empty(); }
  bool is_long(const Line& line) const { return std::max(line.source.size(), line.target.size()) > longest_; }

  /// Ends the chunk and the input before the first bad line of all ranks, if there is one.
  void end_at_bad_line() {
    bad_line_.take_first(ranks_);
    const std::int64_t first = bad_line_.line();
    if (first == FirstBadLine::kNone) return;
    input_.end_at(first, Error(bad_line_.error()));
    std::erase_if(lines_, [&](const Line& each) { return each.number >= first; });
  }

  /// Returns the error that --on-long fail causes for a line.
  Error too_long(const Line& line) const {
    const bool source = line.source.size() > longest_;
    return Error(Position{source ? input_.name() : input_.reference_name(), line.number},
                 "has " + std::to_string((source ? line.source : line.target).size()) +
                     " pieces, more than the longest that is translated, " + std::to_string(longest_) +
                     " (see --max-length; --on-long crop, copy or empty goes on)");
  }

  /// Sets the output of a line that is not translated: `text` takes the place of the translation.
  void settle(Line& line, const std::string& text) {
    line.translate = false;
    line.output = format_->plain(line.number, text);
  }

  void shorten(Line& line) {
    ++long_lines_;
    first_long_ = std::min(first_long_, 2 * line.number + (line.source.size() > longest_ ? 0 : 1));
    // A tree has all words of its line, so that it cannot be made of the beginning of the line.
    switch (trees_ && !scoring_ ? OverlongLine::empty : options_.on_long) {
      case OverlongLine::copy:
        settle(line, line.text);
        break;
      case OverlongLine::empty:
        settle(line, "");
        break;
      default:
        line.source.resize(std::min(line.source.size(), longest_));
        line.target.resize(std::min(line.target.size(), longest_));
    }
  }
  /// Returns whether this value of first_long_ is a line of the references.
  static bool is_reference(std::int64_t first_long) { return first_long % 2 == 1; }

  /// Sorts the lines by length, longest first, forms batches, and translates the batches on all threads.
  void translate_all() {
    order_.clear();
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].translate) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return size_of(lines_[a]) > size_of(lines_[b]); });
    std::vector<std::int64_t> sizes;
    for (const std::size_t i : order_) sizes.push_back(static_cast<std::int64_t>(size_of(lines_[i])));
    batches_ = cut_into_batches(sizes, batch_limits(), static_cast<int>(decoders_.size()));
    finished_ = std::ssize(lines_) - std::ssize(order_);
    if (is_alone()) return translate_alone();
    std::atomic<std::size_t> next{0};
    pool_.run([&](int thread) {
      if (thread >= std::ssize(decoders_)) return;
      for (std::size_t b = next++; b < batches_.size(); b = next++) {
        const std::span<const std::size_t> batch(order_.data() + batches_[b].first,
                                                 batches_[b].second - batches_[b].first);
        compute(batch, decoders_[static_cast<std::size_t>(thread)]);
        finished_ += std::ssize(batch);
        if (thread == 0) show_progress();
      }
    });
  }

  /// Returns the limits of a batch. A GPU computes many rows in nearly the time that it takes for a few.
  LineBatchLimits batch_limits() const {
    const bool gpu = translator_.gpu().has_value();
    const int rows = std::max(1, rows_per_sentence());
    int words = gpu ? std::max(4096, 131072 / rows) : std::max(256, 1024 / rows), lines = gpu ? 4096 : 128;
    if (needs_all_scores()) {
      constexpr std::int64_t kMostScores = std::int64_t{1} << 25;  // of a step: 128 MiB
      const auto most = static_cast<int>(std::max<std::int64_t>(1, kMostScores / translator_.target().size() / rows));
      int& limit = translator_.is_parallel() ? words : lines;  // such a model predicts all words in one step
      limit = std::min(limit, most);
    }
    // Exhaustive search searches line by line, and may give up on one of them.
    if (search_.search == SearchKind::exhaustive) return {.lines = 1, .tokens = 1};
    if (options_.mini_batch > 0) lines = options_.mini_batch;
    if (const ImageInput* const image = image_input(model_config()))
      lines = std::min(lines, most_images(image->samples(), gpu));
    return {.lines = lines, .tokens = options_.mini_batch_words > 0 ? options_.mini_batch_words : words};
  }

  /// Returns whether the memory holds the scores of all pieces in a step of the search, and not those of the best.
  bool needs_all_scores() const {
    constexpr int kMostPruned = 126;  // a wider beam wants more tokens of a row than LogSoftmaxTopK finds
    return rows_per_sentence() > kMostPruned || translator_.models() > 1 || trees_ ||
           search_.search == SearchKind::sample || !score_rules(search_).empty();
  }

  /// Translates or scores lines as one batch or, where the GPU has not enough memory for them, as two. What a line
  /// becomes does not depend on the others.
  void compute(std::span<const std::size_t> lines, Decoder& decoder) {
    try {
      return scoring_ ? score(lines) : translate(lines, decoder);
    } catch (const OutOfGpuMemory&) {
      if (lines.size() < 2) throw;
      if (!divides_.exchange(true))
        log_.info("the GPU has not enough memory for batches of " + format_count(std::ssize(lines)) +
                  " lines, which are divided (--mini-batch-words N or --mini-batch N makes smaller ones)");
    }
    std::vector<std::size_t> left;  // without lines whose image could not be read
    for (const std::size_t i : lines)
      if (lines_[i].translate) left.push_back(i);
    const std::span<const std::size_t> all(left);
    compute(all.first(all.size() / 2), decoder);
    compute(all.subspan(all.size() / 2), decoder);
  }

  /// Returns whether the chunk is a single batch to translate.
  bool is_alone() const { return batches_.size() == 1 && !scoring_; }

  /// Translates the chunk's lines as a single batch, often of one line; all threads share the work of each matrix
  /// product.
  void translate_alone() {
    if (pool_.size() > 1 && !team_ && !translator_.gpu())
      team_.emplace(std::min(pool_.size(), ThreadTeam::kMostUseful));
    decoders_.front().share_with(team_ ? &*team_ : nullptr);
    compute(order_, decoders_.front());
    decoders_.front().share_with(nullptr);
    finished_ = std::ssize(lines_);
    show_progress();
  }

  int rows_per_sentence() const {
    if (scoring_ || translator_.classifies()) return 1;
    if (translator_.is_parallel()) return search_.length_candidates;
    return search_.search == SearchKind::sample ? search_.results() : search_.beam_size;
  }
  /// Returns the length of a line in tokens, with `</s>`.
  std::size_t size_of(const Line& line) const {
    const std::size_t source = images_ ? static_cast<std::size_t>(image_tokens(model_config())) : line.source.size();
    return std::max(source, line.target.size()) + 1;
  }
  const ModelConfig& model_config() const { return translator_.checkpoint(0).model->config(); }

  /// Reads the images of a batch. Returns the lines of the batch whose image could be read; the output of the others is
  /// complete then.
  std::vector<std::size_t> read_images(std::span<const std::size_t> batch,
                                       std::vector<std::vector<std::int32_t>>& ids) {
    std::vector<std::size_t> bad;
    std::vector<std::size_t> readable = images_->read(lines_, batch, ids, bad);
    for (const std::size_t i : bad) settle(lines_[i], "");
    return readable;
  }

  void translate(std::span<const std::size_t> lines, Decoder& decoder) {
    std::vector<std::vector<std::int32_t>> images;
    const std::vector<std::size_t> readable = images_ ? read_images(lines, images) : std::vector<std::size_t>();
    const std::span<const std::size_t> batch = images_ ? std::span<const std::size_t>(readable) : lines;
    if (batch.empty()) return;
    PackedIds source;
    for (std::size_t k = 0; k < batch.size(); ++k) {
      std::vector<std::int32_t> ids = images_ ? std::move(images[k]) : lines_[batch[k]].source;
      ids.push_back(kEndId);
      source.append(ids);
    }
    std::vector<std::vector<std::string_view>> words(batch.size());
    if (trees_)
      for (std::size_t k = 0; k < batch.size(); ++k) words[k] = words_of_line(lines_[batch[k]].text);
    std::vector<std::vector<Hypothesis>> results;
    try {
      results = hypotheses(source, words, decoder);
    } catch (const SearchTooLong& error) {  // of the only line of the batch
      Line& line = lines_[batch.front()];
      bad_line_.add(line.number, Error({input_.name(), line.number}, error.what()).what());
      return settle(line, "");
    }
    for (std::size_t k = 0; k < batch.size(); ++k) {
      Line& line = lines_[batch[k]];
      line.output = format_->lines(translator_, line.number, line.source, results[k], words[k]);
      stats_.add_pieces(std::ssize(results[k].front().ids));
    }
  }

  std::vector<std::vector<Hypothesis>> hypotheses(const PackedIds& source,
                                                  const std::vector<std::vector<std::string_view>>& words,
                                                  Decoder& decoder) {
    if (trees_) {
      std::vector<int> counts;
      for (const auto& each : words) counts.push_back(static_cast<int>(each.size()));
      return parse(decoder, source, counts, *trees_, search_);
    }
    if (search_.coverage_penalty == 0) return decoder.translate(source, search_);
    SearchOptions all = search_;
    all.n_best = search_.beam_size;
    std::vector<std::vector<Hypothesis>> results = decoder.translate(source, all);
    rank_by_coverage(translator_, source, search_, results);
    return results;
  }

  void score(std::span<const std::size_t> lines) {
    std::vector<std::vector<std::int32_t>> images;
    const std::vector<std::size_t> readable = images_ ? read_images(lines, images) : std::vector<std::size_t>();
    const std::span<const std::size_t> batch = images_ ? std::span<const std::size_t>(readable) : lines;
    Batch pairs;
    for (std::size_t k = 0; k < batch.size(); ++k) {
      const Line& line = lines_[batch[k]];
      if (translator_.classifies())
        pairs.add_classified(images[k], line.label);
      else
        pairs.add(images_ ? images[k] : line.source, line.target);
    }
    if (batch.empty()) return;
    const auto scores = translator_.target_log_probabilities(pairs);
    for (std::size_t k = 0; k < batch.size(); ++k) {
      Line& line = lines_[batch[k]];
      Hypothesis hypothesis{line.target, scores[k], 0, 0};
      for (const float x : scores[k]) hypothesis.sum += static_cast<double>(x);
      if (std::isnan(hypothesis.sum)) fail_not_a_number();
      hypothesis.score = search_.final_score(hypothesis);
      line.output = format_->score(translator_, line.source, hypothesis);
      stats_.add_pieces(std::ssize(line.target));
    }
  }

  const TranslateOptions& options_;
  Communicator& ranks_;
  PartialOutput* partial_;
  std::ostream& out_;
  Log& log_;
  // The order of the members format_, input_ and translator_ matters: errors in options and inputs are
  // reported before the models are read.
  std::unique_ptr<TranslateFormat> format_;
  // Whether --score asks for the scores of given translations.
  bool scoring_;
  TranslateInput input_;
  Translator translator_;
  // The user's search options; the maximal output length is lowered to the length that the models allow.
  SearchOptions search_;
  // What the pieces of trees are, if the models write trees.
  std::optional<TreePieces> trees_;
  // The first line of the chunk that cannot be translated and ends the input.
  FirstBadLine bad_line_;
  // Reads the images, if the models read some.
  std::optional<TranslateImages> images_;
  // The greatest number of pieces in a source line, or in a reference of --score. Longer lines are treated as --on-long
  // says.
  std::size_t longest_;
  ThreadPool pool_;
  TranslateStats stats_;
  // The threads that share the work of one batch. Created for the first chunk that has only one batch.
  std::optional<ThreadTeam> team_;
  std::vector<Decoder> decoders_;  // one for each thread
  // Whether the user knows that the GPU has not enough memory for some batches.
  std::atomic<bool> divides_{false};
  // This rank's lines of the chunk.
  std::vector<Line> lines_;
  // The number of lines of lines_ whose output is complete.
  std::atomic<std::int64_t> finished_{0};
  std::optional<Progress> progress_;
  std::vector<std::size_t> order_;
  std::vector<std::pair<std::size_t, std::size_t>> batches_;
  // The number of lines of the input that are translated.
  std::int64_t done_ = 0;
  // The number of lines that were too long: of this rank, and after add_up_ranks() of all.
  std::int64_t long_lines_ = 0;
  // Twice the number of the first line that was too long, plus 1 if only its reference was.
  std::int64_t first_long_ = FirstBadLine::kNone;
};

/// Describes the files that ranks must have in common. A checkpoint ends with its checksum, so that the end tells
/// checkpoints apart.
std::string describe_files(const TranslateOptions& options) {
  std::string out;
  const auto add = [&](const std::string& path, std::int64_t most) {
    if (path.empty()) return;
    const OpenFile file(path);
    std::vector<char> end(static_cast<std::size_t>(std::min(file.size(), most)));
    file.read(file.size() - std::ssize(end), end);
    out += path + " has " + std::to_string(file.size()) + " bytes and the checksum " +
           std::to_string(Checksum::of(end).crc) + "\n";
  };
  constexpr std::int64_t kModelEnd = 4096, kAll = std::numeric_limits<std::int64_t>::max();
  for (const std::string& model : options.models) add(model, kModelEnd);
  add(options.draft_model, kModelEnd);
  add(options.shortlist, kAll);
  return out;
}

}  // namespace

int run_translate(const TranslateOptions& options, std::istream& in, std::ostream& out, Log& log) {
  const std::unique_ptr<Communicator> launched = make_communicator();
  Rank self(launched ? *launched : no_other_ranks(), out, log);
  check_same(self.ranks, "translates", [&] {
    TranslateOptions copy = options;
    return describe_options(FieldList::of(copy), FieldList::of(copy.common));
  });
  run_together(self.ranks, [&] { check_options(options); });
  // A warning and no error, because scripts may give every tool the same --seed.
  if (is_given(options.given, "seed") && options.search.search != SearchKind::sample)
    self.log.warn("--seed does nothing without --search sample");
  std::optional<PartialOutput> partial;
  if (options.resume) {
    if (self.ranks.any(self.ranks.rank() == 0 && is_complete(options.output))) {
      self.log.info(options.output + ": is complete already");
      return 0;
    }
    run_on_first(self.ranks, [&] { partial.emplace(options.output, options.search.n_best > 0); });
  }
  const std::optional<int> gpu = chosen_gpu(options.device, self.ranks, self.log);
  std::optional<TranslateRun> run;
  run_together(self.ranks, [&] { run.emplace(options, in, self, gpu, partial ? &*partial : nullptr); });
  check_same(self.ranks, "translates", [&] { return describe_files(options); });
  warn_of_different_processors(self.ranks, processor_name(gpu), self.log);
  const int code = run->run();
  if (options.resume) run_on_first(self.ranks, [&] { partial->commit(); });
  return code;
}

ToolInfo translate_tool_info() {
  return {.name = "translate",
          .purpose = "translate raw text into raw text of another language, line by line",
          .usage = {"translate -m MODEL.h5 [MODEL.h5...] [options] < source > target"},
          .examples = {"translate -m model.h5 < test.en > test.fr",
                       "echo \"I'm home.\" | translate -m model.h5 --n-best 3 --alignment",
                       "translate -m model.h5 --score test.fr < test.en"},
          .peers = translate_peer_options(),
          .has_ranks = true,
          .further_file = file_of_resume,
          .saves_memory =
              "give smaller batches with --mini-batch-words, shorter lines with --max-length, or fewer "
              "--threads"};
}

}  // namespace heed
