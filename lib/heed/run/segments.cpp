#include "heed/run/segments.h"

#include <algorithm>

#include "heed/base/streams.h"
#include "heed/text/mteval.h"

namespace heed {

std::string count_of(std::int64_t count, const std::string& what) {
  return format_count(count) + " " + what + (count == 1 ? "" : "s");
}

Segments::Segments(const std::vector<std::string>& references, const std::vector<std::string>& systems,
                   InvalidUtf8 policy, bool strip, std::istream& in, std::size_t fields)
    : references_(references.size()), fields_(fields), strip_(strip) {
  for (const auto* paths : {&references, &systems}) {
    for (const std::string& path : *paths)
      readers_.push_back(path.empty() || path == "-" ? std::make_unique<LineReader>(in, input_name(path), policy)
                                                     : std::make_unique<LineReader>(path, policy));
  }
}

bool Segments::read(std::size_t count) {
  const std::size_t files = readers_.size();
  if (lines_.size() < count * files) lines_.resize(count * files);
  views_.resize(count * columns());
  for (size_ = 0; size_ < count; ++size_) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i < files; ++i)
      if (!readers_[i]->next(lines_[size_ * files + i])) ++ended;
    if (ended == files) break;
    if (ended > 0) fail_unequal();
    std::size_t column = size_ * columns();
    for (std::size_t i = 0; i < files; ++i) {
      const std::string& line = lines_[size_ * files + i];
      const std::size_t parts = i < references_ ? fields_ : 1;
      split(*readers_[i], strip_ ? strip_trailing_space(line) : line, std::span(views_).subspan(column, parts));
      column += parts;
    }
    ++count_;
  }
  if (count_ == 0) throw Error(Position{readers_[references_]->name()}, "no lines (nothing to score)");
  return size_ > 0;
}

void Segments::split(const LineReader& reader, std::string_view line, std::span<std::string_view> fields) const {
  for (std::size_t f = 0; f + 1 < fields.size(); ++f) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos)
      throw Error(reader.position(), count_of(static_cast<std::int64_t>(f + 1), "reference") + " instead of " +
                                         std::to_string(fields.size()) + " (TABs stand between them)");
    fields[f] = line.substr(0, tab);
    line.remove_prefix(tab + 1);
  }
  fields.back() = line;
}

bool Segments::ready() {
  return std::all_of(readers_.begin(), readers_.end(), [](const auto& reader) { return reader->ready(); });
}

void Segments::report_invalid(Log& log) const {
  for (const auto& reader : readers_) reader->report_invalid(log);
}

void Segments::fail_unequal() {
  std::string line;
  for (const auto& reader : readers_)
    while (reader->next(line)) {
    }
  const LineReader& first = *readers_.front();
  for (const auto& reader : readers_)
    if (reader->line_number() != first.line_number())
      throw Error(Position{reader->name()}, count_of(reader->line_number(), "line") + ", but " + first.name() +
                                                " has " + count_of(first.line_number(), "line") +
                                                " (line N of one is scored against line N of the other)");
  throw Error("internal: files that end apart have equal lengths");
}

}  // namespace heed
