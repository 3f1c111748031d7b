#include "heed/run/translate_input.h"

#include <algorithm>
#include <numeric>

#include "heed/base/error.h"

namespace heed {
namespace {

constexpr const char* kReferenceRule = "each line needs one translation to score";

/// Returns for each line the rank that translates it. The longest line goes to rank 0, the next to rank 1 and so on to
/// the last rank and back, so that each rank has about as much work.
std::vector<int> owners(const std::vector<TranslateLine>& lines, int ranks) {
  const auto length = [&](std::size_t i) { return lines[i].text.size() + lines[i].reference.size(); };
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return length(a) > length(b); });
  std::vector<int> out(lines.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const int turn = static_cast<int>(k % (2 * static_cast<std::size_t>(ranks)));
    out[order[k]] = turn < ranks ? turn : 2 * ranks - 1 - turn;
  }
  return out;
}

}  // namespace

TranslateInput::TranslateInput(const TranslateOptions& options, std::istream& in, Communicator& ranks, int threads,
                               bool on_gpu)
    : ranks_(ranks),
      input_(options.input),
      score_(options.score),
      first_lines_((on_gpu ? kFirstLinesOnGpu : kFirstLines * static_cast<std::size_t>(threads)) *
                   static_cast<std::size_t>(ranks.size())),
      most_lines_((options.maxi_batch > 0 ? static_cast<std::size_t>(options.maxi_batch)
                   : on_gpu               ? kMostLinesOnGpu
                                          : kMostLines) *
                  static_cast<std::size_t>(ranks.size())) {
  if (ranks_.rank() != 0) return;
  reader_.emplace(open_lines(options.input, in, options.utf8.on_invalid_utf8));
  if (!score_.empty()) references_.emplace(score_, options.utf8.on_invalid_utf8);
}

bool TranslateInput::read(std::vector<TranslateLine>& lines) {
  lines.clear();
  if (reader_) read_lines(lines);
  share_out(lines);
  return size_ > 0;
}

void TranslateInput::skip(std::int64_t count, const std::string& done, std::vector<TranslateLine>& lines) {
  lines.clear();
  run_on_first(ranks_, [&] {
    for (TranslateLine line; line.number < count;) {
      ++line.number;
      if (!reader_->next(line.text) || (references_ && !references_->next(line.reference)))
        throw Error(Position{done}, "has the output of " + std::to_string(count) + " lines, but " + reader_->name() +
                                        " has " + std::to_string(line.number - 1) +
                                        " lines: it belongs to another job (remove it to begin this one)");
      if (line.number == 1 || line.number == count) lines.push_back(line);
    }
  });
  if (reader_) share_read_ = reader_->share();
  share_out(lines);
}

void TranslateInput::end_at(std::int64_t number, const Error& error) {
  size_ = number - first_;
  failed_ = true;
  error_ = std::make_exception_ptr(error);
}

/// Reads the lines of the next chunk, on rank 0.
void TranslateInput::read_lines(std::vector<TranslateLine>& lines) {
  look_ahead_ = std::min(most_lines_, look_ahead_ == 0 ? first_lines_ : kGrowth * look_ahead_);
  std::size_t bytes = 0;
  try {
    TranslateLine line;
    while (lines.size() < look_ahead_ && bytes < kChunkBytes && (lines.empty() || reader_->ready()) &&
           reader_->next(line.text)) {
      if (references_ && !references_->next(line.reference)) fail_unequal(*reader_, *references_, kReferenceRule);
      bytes += line.text.size() + line.reference.size();
      line.number = reader_->line_number();
      lines.push_back(std::move(line));
    }
    if (lines.empty() && references_ && references_->next(line.reference))
      fail_unequal(*reader_, *references_, kReferenceRule);
  } catch (...) {
    error_ = std::current_exception();
    failed_ = true;
  }
  share_before_ = share_read_;
  share_read_ = reader_->share();
}

void TranslateInput::share_out(std::vector<TranslateLine>& lines) {
  if (ranks_.size() > 1) copy_to_all(lines);
  size_ = std::ssize(lines);
  first_ = lines.empty() ? 0 : lines.front().number;
  if (ranks_.size() == 1) return;
  const std::vector<int> owner = owners(lines, ranks_.size());
  std::vector<TranslateLine> own;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (owner[i] == ranks_.rank()) own.push_back(std::move(lines[i]));
  lines = std::move(own);
}

void TranslateInput::copy_to_all(std::vector<TranslateLine>& lines) {
  std::string text;
  add_part(text, failed_ ? "failed" : "");
  for (const TranslateLine& line : lines) {
    add_part(text, std::to_string(line.number));
    add_part(text, line.text);
    add_part(text, line.reference);
  }
  ranks_.broadcast_text(text);
  if (reader_) return;
  std::string_view rest = text;
  failed_ = !take_part(rest).empty();
  while (!rest.empty()) {
    TranslateLine& line = lines.emplace_back();
    line.number = std::stoll(std::string(take_part(rest)));
    line.text = take_part(rest);
    line.reference = take_part(rest);
  }
}

std::optional<double> TranslateInput::share_done(double part) const {
  if (!share_read_) return std::nullopt;
  const double before = share_before_.value_or(0);
  return before + (*share_read_ - before) * part;
}

void TranslateInput::report(Log& log) const {
  if (reader_) reader_->report(log);
  if (references_) references_->report(log);
}

}  // namespace heed
