#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "heed/base/line_io.h"

namespace heed {

/// A sentence pair as text, without line ends.
struct TextPair {
  std::string source, target;
};

/// Splits the line of a TSV file that `reader` has read last: `line` keeps the source, and `target` becomes the target.
/// Throws Error with the place unless the line has exactly two columns.
void split_pair(const LineReader& reader, std::string& line, std::string& target);

/// Reads sentence pairs from two files, in which line i of the target file is the translation of line i of the source
/// file, or from one TSV file or stream, in which each line is "source TAB target"; or from one file or stream of
/// constituency trees in brackets: the words of a tree are the source, and the tree is the target. A blank line of such
/// a file is a pair with two empty sides.
class PairReader {
 public:
  /// Opens a source and a target file. Files named *.gz are decompressed. `relation` says what a line of the target
  /// file is, for the error about unequal files: it ends the sentence "line i of one has to be ...". Throws Error if a
  /// file cannot be read.
  PairReader(const std::string& source_path, const std::string& target_path, InvalidUtf8 policy,
             std::string relation = "the translation of line i of the other");
  /// Opens a TSV file; the path "-" means that the lines come from `in`.
  PairReader(const std::string& tsv_path, std::istream& in, InvalidUtf8 policy);
  /// Opens a file of trees, one on each line; the path "-" means that the lines come from `in`.
  static PairReader of_trees(const std::string& path, std::istream& in, InvalidUtf8 policy);

  /// Reads the next sentence pair. Returns false at the end of the input. Throws Error if one of the two files has more
  /// lines (the message gives both counts), or if a line of a TSV file does not have exactly two columns,
  /// or if a line is no tree.
  bool next(TextPair& pair);

  /// Returns the number of the line, counted from 1, from which next() read the last sentence pair.
  std::int64_t line_number() const { return source_->line_number(); }
  /// Returns the file and the line of the source sentence that next() read last.
  Position source_position() const { return source_->position(); }
  /// Returns the file and the line of the target sentence that next() read last.
  Position target_position() const { return target_ ? target_->position() : source_->position(); }
  /// Returns the name of the input for messages: "a.en + a.fr" for two files, or the name of the TSV file.
  std::string name() const;

  /// Returns the fraction of the input, 0 to 1, that has been read, for a progress line; absent if the input is not a
  /// regular file.
  std::optional<double> share() const { return source_->share(); }

  /// Returns the number of lines with invalid UTF-8, in the source and the target together.
  std::int64_t invalid_lines() const { return source_->invalid_lines() + (target_ ? target_->invalid_lines() : 0); }
  /// Returns the number of the first line, in the source or the target, with invalid UTF-8, or 0.
  std::int64_t first_invalid_line() const;
  /// Logs problems in the input files that did not stop the reading, such as lines with invalid UTF-8.
  void report(Log& log) const;

 private:
  // The readers of the source and the target file. For a TSV file, source_ reads both columns and target_ is null.
  std::unique_ptr<LineReader> source_, target_;
  std::string relation_;
  bool trees_ = false;
};

}  // namespace heed
