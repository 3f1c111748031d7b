#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/line_io.h"
#include "heed/base/log.h"

namespace heed {

/// References and hypotheses of a corpus, read side by side: line N of one belongs to line N of the others.
class Segments {
 public:
  /// Reads the files; "-" and "" are `in`. `strip` takes the white space off the lines' ends, as sacreBLEU does. A line
  /// of a reference file holds `fields` references with TABs between; the last of them may hold further TABs.
  Segments(const std::vector<std::string>& references, const std::vector<std::string>& systems, InvalidUtf8 policy,
           bool strip, std::istream& in, std::size_t fields = 1);

  /// Reads up to `count` segments; false at the end of all files. Throws Error where one file ends before another, or
  /// all are empty or a line has too few references.
  bool read(std::size_t count);
  /// Whether one more segment could be read without waiting for the writer of a pipe.
  bool ready();

  /// Segments that the last read() gave.
  std::size_t size() const { return size_; }
  /// Segments read so far.
  std::int64_t count() const { return count_; }
  /// The number, from 1, of a segment of the last read().
  std::int64_t line_number(std::size_t segment) const {
    return count_ - static_cast<std::int64_t>(size_ - segment) + 1;
  }

  std::size_t systems() const { return readers_.size() - references_; }
  std::string system_name(std::size_t system) const { return readers_[references_ + system]->name(); }
  /// Lines of one segment.
  std::span<const std::string_view> references(std::size_t segment) const {
    return std::span(views_).subspan(segment * columns(), references_ * fields_);
  }
  std::span<const std::string_view> hypotheses(std::size_t segment) const {
    return std::span(views_).subspan(segment * columns() + references_ * fields_, systems());
  }

  void report_invalid(Log& log) const;

 private:
  std::size_t columns() const { return references_ * fields_ + systems(); }
  void split(const LineReader& reader, std::string_view line, std::span<std::string_view> fields) const;
  [[noreturn]] void fail_unequal();

  std::size_t references_, fields_;
  bool strip_;
  std::vector<std::unique_ptr<LineReader>> readers_;  // the references, then the systems
  std::vector<std::string> lines_;                    // [segment, reader]
  std::vector<std::string_view> views_;               // [segment, columns()]
  std::size_t size_ = 0;
  std::int64_t count_ = 0;
};

/// "1 line", "2,000 lines".
std::string count_of(std::int64_t count, const std::string& what);

}  // namespace heed
