#include "heed/run/translate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "heed/base/error.h"
#include "heed/base/line_io.h"
#include "heed/base/threads.h"
#include "heed/decode/force.h"
#include "heed/decode/translator.h"
#include "heed/run/translate_output.h"
#include "heed/text/vocabulary.h"

namespace heed {
namespace {

/// A line on its way through the tool.
struct Line {
  std::string text, reference;
  std::vector<std::int32_t> source, target;  // ids without </s>
  bool translate = true;                     // false: `output` is settled already
  std::string output;
};

class TranslateRun {
 public:
  TranslateRun(const TranslateOptions& options, std::istream& in, std::ostream& out, Log& log)
      : options_(options),
        out_(out),
        log_(log),
        translator_(options.models, Precision::float32),
        format_(make_format(options)),
        pool_(options.threads > 0 ? options.threads
                                  : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
        reader_(options.input == "-" ? LineReader(in, input_name(), options.utf8.on_invalid_utf8)
                                     : LineReader(options.input, options.utf8.on_invalid_utf8)) {
    if (!options.score.empty()) references_.emplace(options.score, options.utf8.on_invalid_utf8);
    for (int i = 0; i < pool_.size(); ++i) models_.push_back(translator_.step_model());
  }

  int run() {
    const auto start = std::chrono::steady_clock::now();
    Progress progress(log_, options_.score.empty() ? "translating" : "scoring", "lines", 0);
    while (read_chunk()) {
      encode_all();
      translate_all();
      for (const Line& line : lines_) out_ << line.output;
      out_.flush();
      done_ += static_cast<std::int64_t>(lines_.size());
      if (done_ > static_cast<std::int64_t>(lines_.size()) || log_.verbose()) progress.to(done_);
    }
    reader_.report_invalid(log_);
    if (references_) references_->report_invalid(log_);
    if (long_lines_ > 0)
      log_.warn(count_text(long_lines_, "line") + " longer than " + std::to_string(options_.max_length) + " pieces: " +
                (options_.on_long == OverlongLine::crop   ? "only the beginning was translated"
                 : options_.on_long == OverlongLine::copy ? "copied"
                                                          : "left empty") +
                "; first: line " + std::to_string(first_long_));
    if (options_.stats) report(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return 0;
  }

 private:
  static std::string input_name() { return "standard input"; }
  static std::string count_text(std::int64_t count, const char* what) {
    return format_count(count) + " " + what + (count == 1 ? "" : "s");
  }

  /// Reads up to --maxi-batch lines, fewer where the input pauses; false at its end.
  bool read_chunk() {
    lines_.clear();
    Line line;
    while (lines_.size() < static_cast<std::size_t>(options_.maxi_batch) && (lines_.empty() || reader_.ready()) &&
           reader_.next(line.text)) {
      if (references_ && !references_->next(line.reference))
        throw Error(references_->position(), "ends after " + std::to_string(references_->line_number()) +
                                                 " lines, but " + reader_.name() +
                                                 " has more (give one reference a line)");
      lines_.push_back(line);
    }
    if (lines_.empty() && references_ && references_->next(line.reference))
      throw Error(references_->position(),
                  "has more lines than " + reader_.name() + ", which has " + std::to_string(reader_.line_number()));
    return !lines_.empty();
  }

  std::vector<std::int32_t> encode(const TextModel& model, const std::string& text) const {
    return options_.pretokenized ? model.encode_tokens(text) : model.encode(text);
  }

  void encode_all() {
    const std::int64_t first = reader_.line_number() - static_cast<std::int64_t>(lines_.size()) + 1;
    pool_.run([&](int thread) {
      for (std::size_t i = static_cast<std::size_t>(thread); i < lines_.size();
           i += static_cast<std::size_t>(pool_.size())) {
        lines_[i].source = encode(translator_.source(), lines_[i].text);
        if (references_) lines_[i].target = encode(translator_.target(), lines_[i].reference);
      }
    });
    for (std::size_t i = 0; i < lines_.size(); ++i) settle(lines_[i], first + static_cast<std::int64_t>(i));
  }

  /// Empty and overlong lines.
  void settle(Line& line, std::int64_t number) {
    line.translate = !line.source.empty() || references_;
    if (!line.translate) line.output = format_->plain(number, "");
    const auto limit = static_cast<std::size_t>(options_.max_length);
    if (limit == 0 || line.source.size() <= limit) return;
    if (options_.on_long == OverlongLine::fail)
      throw Error(Position{reader_.name(), number}, "has " + std::to_string(line.source.size()) +
                                                        " pieces, more than --max-length " + std::to_string(limit) +
                                                        " (--on-long crop|copy|empty goes on)");
    if (long_lines_++ == 0) first_long_ = number;
    if (options_.on_long == OverlongLine::crop) {
      line.source.resize(limit);
    } else {
      line.translate = false;
      line.output = format_->plain(number, options_.on_long == OverlongLine::copy ? line.text : "");
    }
  }

  /// Cuts the lines, longest first, into batches for the threads.
  void translate_all() {
    order_.clear();
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].translate) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return lines_[a].source.size() > lines_[b].source.size(); });
    batches_.clear();
    const int words = options_.mini_batch_words > 0 ? options_.mini_batch_words
                                                    : std::max(256, 4096 / std::max(1, rows_per_sentence()));
    // Few lines (someone types, or a short file) are spread over the threads.
    const std::size_t share =
        (order_.size() + static_cast<std::size_t>(pool_.size()) - 1) / static_cast<std::size_t>(pool_.size());
    const std::size_t most = std::clamp<std::size_t>(share, 1, static_cast<std::size_t>(options_.mini_batch));
    for (std::size_t begin = 0; begin < order_.size();) {
      std::size_t end = begin;
      int sum = 0;
      while (end < order_.size() && end - begin < most && (end == begin || sum + size_of(end) <= words))
        sum += size_of(end++);
      batches_.push_back({begin, end});
      begin = end;
    }
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
      }
    });
  }

  int rows_per_sentence() const {
    return options_.search.search == SearchKind::sample ? options_.search.results() : options_.search.beam_size;
  }
  int size_of(std::size_t rank) const { return static_cast<int>(lines_[order_[rank]].source.size()) + 1; }

  void translate(std::span<const std::size_t> batch, StepModel& model) {
    PackedIds source;
    for (const std::size_t i : batch) {
      std::vector<std::int32_t> ids = lines_[i].source;
      ids.push_back(kEndId);
      source.append(ids);
    }
    const auto results = search(model, source, options_.search);
    const std::int64_t first = reader_.line_number() - static_cast<std::int64_t>(lines_.size()) + 1;
    for (std::size_t k = 0; k < batch.size(); ++k) {
      Line& line = lines_[batch[k]];
      line.output = format_->lines(translator_, first + static_cast<std::int64_t>(batch[k]), line.source, results[k]);
      pieces_ += static_cast<std::int64_t>(results[k].front().ids.size());
    }
  }

  void score(std::span<const std::size_t> batch) {
    Batch pairs;
    for (const std::size_t i : batch) append_pair(pairs, lines_[i].source, lines_[i].target);
    const auto scores = translator_.force(pairs);
    for (std::size_t k = 0; k < batch.size(); ++k) {
      Line& line = lines_[batch[k]];
      Hypothesis hypothesis{line.target, scores[k], 0, 0};
      for (const float x : scores[k]) hypothesis.sum += static_cast<double>(x);
      hypothesis.score = options_.search.final_score(hypothesis.sum, static_cast<int>(scores[k].size()));
      line.output = format_->score(translator_, line.source, hypothesis);
      pieces_ += static_cast<std::int64_t>(line.target.size());
    }
  }

  void report(double seconds) {
    char text[160];
    std::snprintf(text, sizeof text, "%s lines, %s pieces in %s: %.1f lines/s, %.0f pieces/s, %d threads",
                  format_count(done_).c_str(), format_count(pieces_).c_str(), format_duration(seconds).c_str(),
                  static_cast<double>(done_) / seconds, static_cast<double>(pieces_) / seconds, pool_.size());
    log_.info(text);
  }

  const TranslateOptions& options_;
  std::ostream& out_;
  Log& log_;
  Translator translator_;
  std::unique_ptr<TranslateFormat> format_;
  ThreadPool pool_;
  LineReader reader_;
  std::optional<LineReader> references_;
  std::vector<std::unique_ptr<StepModel>> models_;
  std::vector<Line> lines_;
  std::vector<std::size_t> order_;
  std::vector<std::pair<std::size_t, std::size_t>> batches_;
  std::atomic<std::int64_t> pieces_{0};
  std::int64_t done_ = 0, long_lines_ = 0, first_long_ = 0;
};

}  // namespace

int run_translate(const TranslateOptions& options, std::istream& in, std::ostream& out, Log& log) {
  if (options.models.empty()) throw UsageError("needs a model: -m MODEL.h5 (train makes one)");
  options.search.validate();
  return TranslateRun(options, in, out, log).run();
}

ToolInfo translate_tool_info() {
  return {.name = "translate",
          .purpose = "raw text to raw text in another language, line by line",
          .usage = {"translate -m MODEL.h5 [MODEL.h5...] [options] < source > target"},
          .examples = {"translate -m model.h5 < test.en > test.fr",
                       "echo \"I'm home.\" | translate -m model.h5 --n-best 3 --alignment",
                       "translate -m model.h5 --score test.fr < test.en"},
          .hints = {{"lenpen", "normalize", "fairseq"},
                    {"beam", "beam-size", "fairseq"},
                    {"nbest", "n-best", "fairseq"},
                    {"sampling", "search", "fairseq"},
                    {"sampling-topk", "top-k", "fairseq"},
                    {"sampling-topp", "top-p", "fairseq"},
                    {"max-len-b", "max-output-length", "fairseq"},
                    {"min-len", "min-output-length", "fairseq"},
                    {"model", "models", "OpenNMT"},
                    {"cpu-threads", "threads", "Marian"},
                    {"output-sampling", "search", "Marian"},
                    {"maxi-batch-sort", "maxi-batch", "Marian"},
                    {"replace-unk", "alignment", "OpenNMT"}}};
}

}  // namespace heed
