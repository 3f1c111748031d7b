#include "heed/run/segments.h"

#include <algorithm>

#include "heed/base/ordered_pipeline.h"
#include "heed/base/streams.h"
#include "heed/text/scoring/mteval.h"

namespace heed {

Segments::Segments(const std::vector<std::string>& references, const std::vector<std::string>& systems,
                   InvalidUtf8 policy, bool strip, std::istream& in, std::size_t fields)
    : references_(references.size()), fields_(fields), strip_(strip) {
  for (const auto* paths : {&references, &systems}) {
    for (const std::string& path : *paths)
      readers_.push_back(std::make_unique<LineReader>(open_lines(path, in, policy)));
  }
  lines_.resize(readers_.size());
}

/// Sets lines_ to the lines of all complete segments. Called when `text_` no longer changes, because lines_ holds views
/// of `text_`.
void SegmentBlock::find_lines() {
  std::size_t begin = 0;
  for (const std::size_t end : std::span(ends_).first(size_ * columns_)) {
    lines_.push_back(std::string_view(text_).substr(begin, end - begin));
    begin = end;
  }
}

bool Segments::read_segment(SegmentBlock& block) {
  const bool more = readers_.front()->next(lines_.front());
  LineReader* other = nullptr;
  for (std::size_t i = 1; i < readers_.size(); ++i)
    if (readers_[i]->next(lines_[i]) != more && !other) other = readers_[i].get();
  if (other) fail_unequal(*readers_.front(), *other, "line N of one is scored against line N of the other");
  if (!more) return false;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    std::string_view rest = lines_[i];
    for (std::size_t field = 1; i < references_ && field < fields_; ++field) {
      const std::size_t tab = rest.find('\t');
      if (tab == std::string_view::npos)
        throw Error(readers_[i]->position(), count_of(static_cast<std::int64_t>(field), "reference") + " instead of " +
                                                 std::to_string(fields_) + " (TABs stand between them)");
      block.ends_.push_back(block.text_.append(rest, 0, tab).size());
      rest.remove_prefix(tab + 1);
    }
    // White space is removed only now, because the TAB before an empty last reference is white space, too.
    block.ends_.push_back(block.text_.append(strip_ ? strip_trailing_space(rest) : rest).size());
  }
  ++block.size_;
  ++count_;
  return true;
}

bool Segments::read(SegmentBlock& block) {
  block.text_.clear();
  block.ends_.clear();
  block.lines_.clear();
  block.size_ = 0;
  block.references_ = references_ * fields_;
  block.columns_ = block.references_ + systems();
  block.first_ = count_ + 1;
  try {
    while (read_segment(block) && block.size_ < kBlock && block.text_.size() < kPipelineItemBytes && ready()) {
    }
  } catch (...) {
    block.find_lines();
    throw;
  }
  if (count_ == 0) throw Error(Position{readers_[references_]->name()}, "no lines (nothing to score)");
  block.find_lines();
  return block.size_ > 0;
}

bool Segments::ready() {
  return std::all_of(readers_.begin(), readers_.end(), [](const auto& reader) { return reader->ready(); });
}

std::optional<double> Segments::share() const {
  for (const auto& reader : readers_)
    if (const auto share = reader->share()) return share;
  return std::nullopt;
}

void Segments::report(Log& log) const {
  for (const auto& reader : readers_) reader->report(log);
}

}  // namespace heed
