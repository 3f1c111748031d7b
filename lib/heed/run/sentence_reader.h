#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>

#include "heed/base/error.h"
#include "heed/base/line_io.h"
#include "heed/base/log.h"

namespace heed {

struct InspectAttentionOptions;

/// Reads source lines and, with --target or --tsv, their target lines.
class SentenceReader {
 public:
  SentenceReader(const InspectAttentionOptions& options, std::istream& in);

  bool has_target() const { return tsv_ || target_; }
  /// Reads the next source sentence and its target sentence; returns false at the end. When the user gives no targets,
  /// `target` stays unchanged. Throws Error when one file has more lines than the other, or when a line of a TSV file
  /// does not have two columns.
  bool next(std::string& source, std::string& target);
  bool ready() { return source_.ready(); }
  /// Returns the line of --gold about the sentence, and its place.
  const std::string& links() const { return links_; }
  Position links_position() const { return gold_->position(); }

  std::int64_t line() const { return source_.line_number(); }
  /// Returns the fraction of the source lines, 0 to 1, that has been read; absent if they do not come from a regular
  /// file.
  std::optional<double> share() const { return source_.share(); }
  Position source_position() const { return source_.position(); }
  Position target_position() const { return target_ ? target_->position() : source_.position(); }
  void report(Log& log) const;

 private:
  bool tsv_;
  LineReader source_;
  std::optional<LineReader> target_, gold_;
  std::string links_;
};

}  // namespace heed
