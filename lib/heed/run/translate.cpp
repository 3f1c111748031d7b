#include "heed/run/translate.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/line_io.h"
#include "heed/base/streams.h"
#include "heed/base/thread_team.h"
#include "heed/base/threads.h"
#include "heed/cost/translation_cost.h"
#include "heed/decode/force.h"
#include "heed/decode/hypotheses.h"
#include "heed/decode/translator.h"
#include "heed/run/line_pipeline.h"
#include "heed/run/peer_options.h"
#include "heed/run/translate_output.h"
#include "heed/text/strings/unicode.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

/// One input line with its ids and its output.
struct Line {
  std::string text, reference;
  // The ids of the pieces of `text` and of `reference`, without </s>.
  std::vector<std::int32_t> source, target;
  // Whether the line must be translated. If false, `output` is already complete, for example for an empty line.
  bool translate = true;
  std::string output;
};

class TranslateRun {
 public:
  TranslateRun(const TranslateOptions& options, std::istream& in, std::ostream& out, Log& log)
      : options_(options),
        out_(out),
        log_(log),
        format_(make_format(options)),
        reader_(open_lines(options.input, in, options.utf8.on_invalid_utf8)),
        references_(open_references(options)),
        translator_(options.models, options.precision, thread_count(options.threads), options.shortlist,
                    options.draft_model),
        search_(options.search),
        longest_(options.max_length > 0 ? static_cast<std::size_t>(options.max_length) : kNoLimit),
        pool_(thread_count(options.threads)) {
    const Model<float>& first = *translator_.checkpoint(0).model;
    if (!options.alignment.empty() && last_cross_attention(first) < 0)
      throw UsageError("--alignment: " + options.models.front() + " is a model of the task " +
                       std::string(architecture(first.config())) + ", which has no attention to the source");
    if (const auto most = translator_.longest_sequence()) limit_lengths(*most);
    if (translator_.shortlist()) warn_of_foreign_lines(*translator_.shortlist());
    tell_of_byte_order_mark(options.shortlist, log_);
    for (int i = 0; i < pool_.size(); ++i) models_.push_back(step_model());
  }

  int run() {
    const auto start = std::chrono::steady_clock::now();
    if (!reader_.typed())
      progress_.emplace(log_, options_.score.empty() ? "translating" : "scoring", "lines",
                        [this] { return share_done(); });
    while (read_chunk()) {
      encode_all();
      const auto begin = std::chrono::steady_clock::now();
      translate_all();
      translating_ += seconds_since(begin);
      if (!counted_.empty()) take_counts();
      for (const Line& line : lines_) out_ << line.output;
      out_.flush();
      done_ += static_cast<std::int64_t>(lines_.size());
      if (error_) break;
    }
    progress_.reset();
    reader_.report(log_);
    if (references_) references_->report(log_);
    if (long_lines_ > 0) warn_of_long_lines();
    if (error_) std::rethrow_exception(error_);
    if (!options_.draft_model.empty()) note_unused_draft();
    if (options_.stats) report(seconds_since(start));
    return 0;
  }

 private:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kChunkBytes = std::size_t{16} << 20;
  // The number of lines per thread in the first chunk. A chunk is a group of lines that are translated together.
  static constexpr std::size_t kFirstLines = 8;
  // The factor by which the number of lines grows from one chunk to the next.
  static constexpr std::size_t kGrowth = 4;

  static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  static std::optional<LineReader> open_references(const TranslateOptions& options) {
    if (options.score.empty()) return std::nullopt;
    return std::optional<LineReader>(std::in_place, options.score, options.utf8.on_invalid_utf8);
  }

  /// Returns a step model for one thread. With --stats the step model counts its work, so that report_expected() can
  /// compute the predicted cost. Work is counted only in beam search over the whole vocabulary without a draft model,
  /// the only search whose cost can be predicted.
  std::unique_ptr<StepModel> step_model() {
    if (!options_.draft_model.empty()) {
      auto speculative = translator_.speculative_step_model(options_.draft_length);
      speculative_.push_back(speculative.get());
      return speculative;
    }
    std::unique_ptr<StepModel> model = translator_.step_model();
    if (!options_.stats || references_ || search_.search != SearchKind::beam || translator_.shortlist()) return model;
    auto counted = std::make_unique<CountedStepModel>(std::move(model));
    counted_.push_back(counted.get());
    return counted;
  }

  void take_counts() {
    // The greatest number of elements in chunks_. The last element adds up the counts of all further chunks.
    constexpr std::size_t kMostChunks = 1000;
    if (chunks_.size() < kMostChunks) chunks_.emplace_back(counted_.size());
    for (std::size_t i = 0; i < counted_.size(); ++i) chunks_.back()[i] += counted_[i]->take();
  }

  /// Limits the lengths of source lines and translations for models with learned positions: no sequence may have more
  /// than `most` tokens, `</s>` included.
  void limit_lengths(int most) {
    longest_ = std::min(longest_, static_cast<std::size_t>(most - 1));
    search_.max_output_length = std::min(search_.max_output_length, std::max(1, most - 1));
    if (search_.min_output_length > search_.max_output_length)
      throw UsageError("--min-output-length " + std::to_string(search_.min_output_length) +
                       " is more than the model's " + std::to_string(most) + " learned positions allow");
  }

  void warn_of_foreign_lines(const Shortlist& list) {
    if (list.foreign_lines() > 0)
      log_.warn(list.first_foreign().text() + ": the model has no such piece; " + format_count(list.foreign_lines()) +
                " of " + format_count(list.lines()) + " such lines of the shortlist are left out");
  }

  void warn_of_long_lines() {
    const char* done = options_.on_long == OverlongLine::copy    ? "copied"
                       : options_.on_long == OverlongLine::empty ? "left empty"
                       : references_                             ? "only the beginning was scored"
                                                                 : "only the beginning was translated";
    log_.warn(first_long_.text() + ": a line of more than " + std::to_string(longest_) + " pieces, " + done +
              "; such lines: " + std::to_string(long_lines_) + " (--max-length and --on-long decide)");
  }

  /// Reads the next chunk of lines, which will be translated together. The first chunk has few lines, so that the first
  /// translations appear soon; later chunks have up to --maxi-batch lines, or fewer when the input pauses or lines are
  /// very long. Returns false at the end of the input. An error in the input is kept in error_ until the earlier lines
  /// have been written.
  bool read_chunk() {
    lines_.clear();
    first_ = reader_.line_number() + 1;
    const auto most = static_cast<std::size_t>(options_.maxi_batch);
    look_ahead_ =
        std::min(most, look_ahead_ == 0 ? kFirstLines * static_cast<std::size_t>(pool_.size()) : kGrowth * look_ahead_);
    std::size_t bytes = 0;
    try {
      Line line;
      while (lines_.size() < look_ahead_ && bytes < kChunkBytes && (lines_.empty() || reader_.ready()) &&
             reader_.next(line.text)) {
        if (references_ && !references_->next(line.reference)) fail_unequal();
        bytes += line.text.size() + line.reference.size();
        lines_.push_back(std::move(line));
      }
      if (lines_.empty() && references_ && references_->next(line.reference)) fail_unequal();
    } catch (...) {
      error_ = std::current_exception();
    }
    share_before_ = share_read_;
    share_read_ = reader_.share();
    return !lines_.empty();
  }

  /// Returns which fraction of the input is translated: earlier chunks, and the finished lines of this chunk.
  std::optional<double> share_done() const {
    if (!share_read_) return std::nullopt;
    const double before = share_before_.value_or(0);
    const double here = lines_.empty() ? 1 : static_cast<double>(finished_) / static_cast<double>(lines_.size());
    return before + (*share_read_ - before) * here;
  }

  /// Draws the progress line. Called on the main thread only, while other threads may translate.
  void show_progress() {
    if (progress_) progress_->to(done_ + finished_);
  }

  /// Reads the input and the file of --score to their ends and throws an Error with their numbers of lines.
  [[noreturn]] void fail_unequal() {
    std::string rest;
    while (reader_.next(rest)) continue;
    while (references_->next(rest)) continue;
    const auto lines = [](const LineReader& reader) {
      return std::to_string(reader.line_number()) + (reader.line_number() == 1 ? " line" : " lines");
    };
    throw Error(Position{references_->name()}, "has " + lines(*references_) + ", but " + reader_.name() + " has " +
                                                   lines(reader_) + " (each line needs one translation to score)");
  }

  std::vector<std::int32_t> encode(const TextModel& model, const std::string& text) const {
    if (is_blank(text)) return {};
    return options_.pretokenized ? model.encode_tokens(text) : model.encode(text);
  }

  void encode_all() {
    pool_.run([&](int thread) {
      for (std::size_t i = static_cast<std::size_t>(thread); i < lines_.size();
           i += static_cast<std::size_t>(pool_.size())) {
        lines_[i].source = encode(translator_.source(), lines_[i].text);
        if (references_) lines_[i].target = encode(translator_.target(), lines_[i].reference);
      }
    });
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const bool is_long = std::max(lines_[i].source.size(), lines_[i].target.size()) > longest_;
      if (is_long && options_.on_long == OverlongLine::fail) {
        error_ = std::make_exception_ptr(too_long(i));
        lines_.resize(i);
      } else if (is_long) {
        shorten(lines_[i], number_of(i));
      } else if (lines_[i].source.empty() && !references_) {
        settle(lines_[i], number_of(i), "");
      }
    }
  }

  std::int64_t number_of(std::size_t i) const { return first_ + static_cast<std::int64_t>(i); }

  /// Returns the error that --on-long fail causes for line i of the chunk, which is too long.
  Error too_long(std::size_t i) const {
    const bool source = lines_[i].source.size() > longest_;
    return Error(Position{source ? reader_.name() : references_->name(), number_of(i)},
                 "has " + std::to_string((source ? lines_[i].source : lines_[i].target).size()) +
                     " pieces, more than the longest that is translated, " + std::to_string(longest_) +
                     " (see --max-length; --on-long crop, copy or empty goes on)");
  }

  /// Sets the output of a line that is not translated: `text` takes the place of the translation.
  void settle(Line& line, std::int64_t number, const std::string& text) {
    line.translate = false;
    line.output = format_->plain(number, text);
  }

  void shorten(Line& line, std::int64_t number) {
    if (long_lines_++ == 0)
      first_long_ = {line.source.size() > longest_ ? reader_.name() : references_->name(), number};
    switch (options_.on_long) {
      case OverlongLine::copy:
        settle(line, number, line.text);
        break;
      case OverlongLine::empty:
        settle(line, number, "");
        break;
      default:
        line.source.resize(std::min(line.source.size(), longest_));
        line.target.resize(std::min(line.target.size(), longest_));
    }
  }

  /// Sorts the lines by length, longest first, forms batches, and translates the batches on all threads.
  void translate_all() {
    order_.clear();
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].translate) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return size_of(lines_[a]) > size_of(lines_[b]); });
    batches_.clear();
    const int words = options_.mini_batch_words > 0 ? options_.mini_batch_words
                                                    : std::max(256, 1024 / std::max(1, rows_per_sentence()));
    // Returns the quotient all / some, rounded up, and at least 1.
    const auto divide_up = [](std::int64_t all, std::int64_t some) {
      return std::max<std::int64_t>(1, (all + some - 1) / some);
    };
    std::int64_t total = 0;
    for (std::size_t rank = 0; rank < order_.size(); ++rank) total += size_of(rank);
    // The number of batches, `parts`, is a multiple of the number of threads, and all batches have about the same
    // number of tokens, so that all threads finish together and even a few lines are spread over the threads.
    const std::int64_t rounds =
        std::max(divide_up(std::ssize(order_), std::int64_t{options_.mini_batch} * pool_.size()),
                 divide_up(total, std::int64_t{words} * pool_.size()));
    const std::int64_t parts = rounds * pool_.size();
    std::int64_t before = 0;
    for (std::size_t begin = 0; begin < order_.size();) {
      const std::int64_t until = total * (std::ssize(batches_) + 1) / parts;
      std::size_t end = begin;
      std::int64_t sum = 0;
      while (end < order_.size() && end - begin < static_cast<std::size_t>(options_.mini_batch) &&
             (end == begin || (sum + size_of(end) <= words && before + sum + size_of(end) / 2 < until)))
        sum += size_of(end++);
      batches_.push_back({begin, end});
      begin = end;
      before += sum;
    }
    finished_ = std::ssize(lines_) - std::ssize(order_);
    if (batches_.size() == 1 && !references_) return translate_alone();
    std::atomic<std::size_t> next{0};
    pool_.run([&](int thread) {
      for (std::size_t b = next++; b < batches_.size(); b = next++) {
        const std::span<const std::size_t> batch(order_.data() + batches_[b].first,
                                                 batches_[b].second - batches_[b].first);
        if (references_) {
          score(batch);
        } else {
          translate(batch, *models_[static_cast<std::size_t>(thread)]);
        }
        finished_ += std::ssize(batch);
        if (thread == 0) show_progress();
      }
    });
  }

  /// Translates the chunk's lines as a single batch, often of one line; all threads share the work of each matrix
  /// product.
  void translate_alone() {
    if (pool_.size() > 1 && !team_) team_.emplace(std::min(pool_.size(), ThreadTeam::kMostUseful));
    models_.front()->share_with(team_ ? &*team_ : nullptr);
    translate(order_, *models_.front());
    models_.front()->share_with(nullptr);
    ++alone_;
    finished_ = std::ssize(lines_);
    show_progress();
  }

  int rows_per_sentence() const {
    if (references_) return 1;
    return search_.search == SearchKind::sample ? search_.results() : search_.beam_size;
  }
  /// Returns the length in tokens, with `</s>`, of the line whose index is order_[rank].
  int size_of(std::size_t rank) const { return static_cast<int>(size_of(lines_[order_[rank]])); }
  static std::size_t size_of(const Line& line) { return std::max(line.source.size(), line.target.size()) + 1; }

  void translate(std::span<const std::size_t> batch, StepModel& model) {
    PackedIds source;
    for (const std::size_t i : batch) {
      std::vector<std::int32_t> ids = lines_[i].source;
      ids.push_back(kEndId);
      source.append(ids);
    }
    const auto results = search(model, source, search_);
    for (std::size_t k = 0; k < batch.size(); ++k) {
      Line& line = lines_[batch[k]];
      line.output = format_->lines(translator_, number_of(batch[k]), line.source, results[k]);
      pieces_ += static_cast<std::int64_t>(results[k].front().ids.size());
    }
  }

  void score(std::span<const std::size_t> batch) {
    Batch pairs;
    for (const std::size_t i : batch) pairs.add(lines_[i].source, lines_[i].target);
    const auto scores = translator_.force(pairs);
    for (std::size_t k = 0; k < batch.size(); ++k) {
      Line& line = lines_[batch[k]];
      Hypothesis hypothesis{line.target, scores[k], 0, 0};
      for (const float x : scores[k]) hypothesis.sum += static_cast<double>(x);
      if (std::isnan(hypothesis.sum)) fail_not_a_number();
      hypothesis.score = search_.final_score(hypothesis.sum, static_cast<int>(scores[k].size()));
      line.output = format_->score(translator_, line.source, hypothesis);
      pieces_ += static_cast<std::int64_t>(line.target.size());
    }
  }

  void report(double seconds) {
    char text[160];
    std::snprintf(text, sizeof text, "%s lines, %s pieces in %s: %.1f lines/s, %.0f pieces/s, %d threads, %s",
                  format_count(done_).c_str(), format_count(pieces_).c_str(), format_duration(seconds).c_str(),
                  static_cast<double>(done_) / seconds, static_cast<double>(pieces_) / seconds, pool_.size(),
                  std::string(instruction_set_name(instruction_set())).c_str());
    log_.info(text);
    if (!options_.draft_model.empty()) report_draft();
    if (!counted_.empty()) report_expected(seconds);
  }

  DraftCounts draft_counts() const {
    DraftCounts sum;
    for (const SpeculativeStepModel* model : speculative_) sum += model->counts();
    return sum;
  }

  /// Logs how many of the draft model's guesses were right.
  void report_draft() {
    const DraftCounts counts = draft_counts();
    if (counts.sentences == 0) return;
    const auto steps = static_cast<double>(counts.steps);
    char text[200];
    std::snprintf(
        text, sizeof text,
        "the draft model was used for %s of %s lines: %s of %s guessed tokens were right; a step of the model "
        "gave %.2f tokens",
        format_count(counts.sentences).c_str(), format_count(done_).c_str(), format_count(counts.accepted).c_str(),
        format_count(counts.proposed).c_str(), static_cast<double>(counts.accepted) / steps + 1);
    log_.info(text);
  }

  /// Says so when the draft model was used for less than half of the lines, because the others were translated in
  /// batches of several lines, or are longer than the draft model's learned positions.
  void note_unused_draft() {
    const std::int64_t used = draft_counts().sentences;
    if (pieces_ > 0 && 2 * used < done_)
      log_.info("the draft model was used for " + format_count(used) + " of " + format_count(done_) +
                " lines: it is for lines that come one at a time and are not longer than it accepts (a file is "
                "translated fastest without --draft-model, in batches)");
  }

  /// Logs the speed that the cost model predicts, and the predicted fraction of time for each kind of work, for
  /// comparison with the measured speed.
  void report_expected(double seconds) {
    const bool alone = team_ && chunks_.size() <= alone_ * 2;
    TranslationCost cost = translation_cost(translator_, chunks_, pool_, alone ? &*team_ : nullptr);
    if (cost.parts.empty()) {
      if (pieces_ > 0) log_.info("expected: no prediction for this kind of model");
      return;
    }
    const double text = seconds - translating_, threads = alone ? 1 : pool_.size();
    double waiting = cost.seconds * threads;
    for (const CostPart& part : cost.parts) waiting -= part.seconds;
    cost.parts.push_back({"waiting for a thread", waiting});
    cost.parts.push_back({"reading, text, writing (as measured)", text * threads});
    const auto pieces = static_cast<double>(pieces_);
    const double expected = cost.seconds + text;
    log_.info("expected " + format_count(std::llround(pieces / expected)) + " pieces/s, of which:");
    for (const CostPart& part : cost.parts)
      log_.info("  " + part.name + " " + describe(part, expected * threads, pieces, "piece"));
  }

  const TranslateOptions& options_;
  std::ostream& out_;
  Log& log_;
  // The order of the members format_, reader_, references_ and translator_ matters: errors in options and inputs are
  // reported before the models are read.
  std::unique_ptr<TranslateFormat> format_;
  LineReader reader_;
  std::optional<LineReader> references_;
  Translator translator_;
  // The user's search options; the maximal output length is lowered to the length that the models allow.
  SearchOptions search_;
  // The greatest number of pieces in a source line, or in a reference of --score. Longer lines are treated as --on-long
  // says.
  std::size_t longest_;
  ThreadPool pool_;
  // The threads that share the work of one batch. Created for the first chunk that has only one batch.
  std::optional<ThreadTeam> team_;
  std::vector<std::unique_ptr<StepModel>> models_;
  // The step models in models_ as such that use the draft model; empty without --draft-model.
  std::vector<SpeculativeStepModel*> speculative_;
  // Those step models in models_ that count their work for --stats; empty when no work is counted.
  std::vector<CountedStepModel*> counted_;
  // The counted work of each thread in each chunk: [chunk][thread].
  std::vector<std::vector<DecodingCounts>> chunks_;
  // The number of chunks that had only one batch, which translate_alone() translated.
  std::size_t alone_ = 0;
  // The number of seconds spent in translate_all().
  double translating_ = 0;
  std::vector<Line> lines_;
  // The greatest number of lines that this chunk may have; 0 before the first chunk.
  std::size_t look_ahead_ = 0;
  // The number of lines of lines_ whose output is complete.
  std::atomic<std::int64_t> finished_{0};
  // The fraction of the input that had been read before this chunk, and after it; nothing when unknown.
  std::optional<double> share_before_, share_read_;
  std::optional<Progress> progress_;
  std::vector<std::size_t> order_;
  std::vector<std::pair<std::size_t, std::size_t>> batches_;
  std::atomic<std::int64_t> pieces_{0};
  std::exception_ptr error_;
  // The line number in the input of lines_.front(), counted from 1.
  std::int64_t first_ = 1;
  std::int64_t done_ = 0, long_lines_ = 0;
  Position first_long_;
};

/// Throws UsageError for options with which the draft model could not be used. `length_given`: whether the user has set
/// --draft-length.
void check_draft(const TranslateOptions& options, bool length_given) {
  if (options.draft_model.empty()) {
    if (length_given) throw UsageError("--draft-length: needs --draft-model");
    return;
  }
  if (!options.score.empty()) throw UsageError("--draft-model: has no use with --score, which translates nothing");
  if (options.search.search == SearchKind::sample)
    throw UsageError("--draft-model: has no use with --search sample (leave --search sample out and add -b 1)");
  if (options.search.beam_size != 1) throw UsageError("--draft-model: needs greedy search (add -b 1)");
  if (options.models.size() > 1)
    throw UsageError("--draft-model: drafts for one model, but " + std::to_string(options.models.size()) +
                     " are given (leave --draft-model or the ensemble out)");
}

/// Throws UsageError for options that have no effect together with the other options.
void check_use(const TranslateOptions& options) {
  const auto given = [&](std::string_view name) {
    return std::find(options.given.begin(), options.given.end(), name) != options.given.end();
  };
  const bool sampling = options.search.search == SearchKind::sample, scoring = !options.score.empty();
  for (const std::string name : {"search", "beam-size", "n-best", "max-length-factor", "max-output-length",
                                 "min-output-length", "temperature", "top-k", "top-p", "scores", "no-detokenize"})
    if (scoring && given(name)) throw UsageError("--" + name + ": has no use with --score, which translates nothing");
  for (const std::string name : {"temperature", "top-k", "top-p"})
    if (!sampling && given(name)) throw UsageError("--" + name + ": needs --search sample");
  check_draft(options, given("draft-length"));
  if (sampling && given("beam-size")) throw UsageError("--beam-size: has no use with --search sample");
  if (options.search.length_penalty > 0 && given("normalize"))
    throw UsageError("--normalize: --length-penalty takes its place (leave one of them out)");
}

}  // namespace

int run_translate(const TranslateOptions& options, std::istream& in, std::ostream& out, Log& log) {
  if (options.models.empty()) throw UsageError("needs a model: -m MODEL.h5 (train makes one)");
  check_use(options);
  options.search.validate();
  if (!options.score.empty() && options.on_long == OverlongLine::copy)
    throw UsageError("--on-long copy has nothing to copy with --score (take crop, empty or fail)");
  if (!options.score.empty() && !options.shortlist.empty())
    throw UsageError("--shortlist: has no use with --score, which asks for pieces that may not be in it");
  for (const std::string& model : options.models)
    if (model != options.models.front() && ::access(model.c_str(), R_OK) == 0 && !looks_like_checkpoint(model))
      throw UsageError("--models: '" + model + "' is not a checkpoint (text to translate is given with -i " + model +
                       " or < " + model + ")");
  return TranslateRun(options, in, out, log).run();
}

ToolInfo translate_tool_info() {
  return {.name = "translate",
          .purpose = "translate raw text into raw text of another language, line by line",
          .usage = {"translate -m MODEL.h5 [MODEL.h5...] [options] < source > target"},
          .examples = {"translate -m model.h5 < test.en > test.fr",
                       "echo \"I'm home.\" | translate -m model.h5 --n-best 3 --alignment",
                       "translate -m model.h5 --score test.fr < test.en"},
          .peers = translate_peer_options()};
}

}  // namespace heed
