#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "heed/base/line_io.h"

namespace heed {

struct TextPair {
  std::string source, target;
};

/// Reads parallel text: two files whose i-th lines belong together, or one file (or stdin) with "source TAB target" on
/// each line.
class PairReader {
 public:
  /// Throws Error where a file cannot be read. .gz is decompressed.
  PairReader(const std::string& source_path, const std::string& target_path, InvalidUtf8 policy);
  /// TSV; "-" is `in`.
  PairReader(const std::string& tsv_path, std::istream& in, InvalidUtf8 policy);

  /// The next pair; false at the end. Throws Error where one file has more lines than the other (the message gives
  /// both counts) and where a line of a TSV has not two columns.
  bool next(TextPair& pair);

  /// Number of the pair last returned, from 1: its line.
  std::int64_t line_number() const { return source_->line_number(); }
  /// Where the last source and target lines stand.
  Position source_position() const { return source_->position(); }
  Position target_position() const { return target_ ? target_->position() : source_->position(); }
  /// "a.en + a.fr", or the TSV's name.
  std::string name() const;

  /// The share of the input, 0..1, that the pairs returned so far make up; nothing where it is no regular file.
  std::optional<double> share() const { return source_->share(); }

  std::int64_t invalid_lines() const { return source_->invalid_lines() + (target_ ? target_->invalid_lines() : 0); }
  void report(Log& log) const;

 private:
  [[noreturn]] void fail_unequal(bool source_ended);

  std::unique_ptr<LineReader> source_, target_;  // no target_: TSV
};

}  // namespace heed
