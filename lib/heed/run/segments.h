#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/line_io.h"
#include "heed/base/log.h"

namespace heed {

/// A block of consecutive segments of a corpus. A segment consists of the references and of each system's hypothesis
/// for one source sentence.
class SegmentBlock {
 public:
  SegmentBlock() = default;
  SegmentBlock(const SegmentBlock&) = delete;
  SegmentBlock& operator=(const SegmentBlock&) = delete;

  std::size_t size() const { return size_; }
  /// Returns the line number, from 1, of a segment of this block.
  std::int64_t line_number(std::size_t segment) const { return first_ + static_cast<std::int64_t>(segment); }
  std::span<const std::string_view> references(std::size_t segment) const {
    return std::span(lines_).subspan(segment * columns_, references_);
  }
  std::span<const std::string_view> hypotheses(std::size_t segment) const {
    return std::span(lines_).subspan(segment * columns_ + references_, columns_ - references_);
  }

  std::size_t bytes() const { return text_.size(); }
  void free() { std::string().swap(text_); }

 private:
  friend class Segments;
  void find_lines();

  // The text of all lines of the block, one line after the other.
  std::string text_;
  std::vector<std::size_t> ends_;
  // The lines of each segment, [segment][column]: references, then hypotheses. The lines are views of text_.
  std::vector<std::string_view> lines_;
  std::size_t size_ = 0, references_ = 0, columns_ = 0;
  std::int64_t first_ = 1;
};

/// Reads the references and hypotheses of a corpus line by line at the same time: line N of each file belongs to
/// segment N.
class Segments {
 public:
  /// Opens the files; "-" and "" mean `in`. With `strip`, white space at the ends of lines is removed, as in sacreBLEU.
  /// Each line of a reference file holds `fields` references with TABs between them; the last reference may be empty,
  /// or contain further TABs.
  Segments(const std::vector<std::string>& references, const std::vector<std::string>& systems, InvalidUtf8 policy,
           bool strip, std::istream& in, std::size_t fields = 1);

  /// Reads the segments that are ready, at most a full block; waits until at least one is ready. Returns false at the
  /// end of all files. Throws Error when one file ends before another, when all files are empty, or when a line has too
  /// few references; the block then holds the segments before the error.
  bool read(SegmentBlock& block);
  /// Returns whether one more segment can be read without waiting for the program that writes into a pipe.
  bool ready();

  /// Returns the number of segments read so far.
  std::int64_t count() const { return count_; }
  std::size_t systems() const { return readers_.size() - references_; }
  std::string system_name(std::size_t system) const { return readers_[references_ + system]->name(); }

  /// Returns the fraction of the input, 0 to 1, that has been read, for a progress line; absent if no input is a
  /// regular file.
  std::optional<double> share() const;

  void report(Log& log) const;

 private:
  static constexpr std::size_t kBlock = 64;

  bool read_segment(SegmentBlock& block);

  std::size_t references_, fields_;
  bool strip_;
  // The readers of the reference files, followed by the readers of the systems' hypothesis files.
  std::vector<std::unique_ptr<LineReader>> readers_;
  // The line that each reader has read last.
  std::vector<std::string> lines_;
  std::int64_t count_ = 0;
};

}  // namespace heed
