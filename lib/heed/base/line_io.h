#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/log.h"
#include "heed/base/streams.h"

namespace heed {

/// What to do with bytes that are not UTF-8.
enum class InvalidUtf8 { replace, keep, fail };

/// Takes a byte-order mark (U+FEFF in UTF-8) off the first line of a text and returns whether there was one. Throws
/// Error, with what to do, where the line begins like text in another encoding, or like compressed data.
bool take_byte_order_mark(std::string& first_line, const Position& where);
/// Returns the note that a byte-order mark at the start of file `name` was left out.
std::string byte_order_mark_note(const std::string& name);
/// Logs that note where the regular file `path` begins with a mark: for files that are read by functions without a log.
void tell_of_byte_order_mark(const std::string& path, Log& log);

/// The line contract's reading side: only LF ends a line; the CR of a CRLF is dropped; U+2028, NUL, a bare CR or a TAB
/// are text; a last line without LF counts. A byte-order mark at the start is no text: columns count from behind it.
/// Lines longer than kMaxLineBytes are an error that names the line, so that a file without lines cannot exhaust the
/// memory.
class LineReader {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

  /// Reads a file, .gz file or stdin ("-" or "").
  explicit LineReader(const std::string& path, InvalidUtf8 policy = InvalidUtf8::replace);
  /// Reads an open stream; `name` is for messages.
  LineReader(std::istream& in, std::string name, InvalidUtf8 policy = InvalidUtf8::replace);

  /// The next line, without its end; false at the end of the input. Throws Error on unreadable or (policy fail) invalid
  /// input.
  bool next(std::string& line);
  /// Whether next() would return at once, without waiting for the writer at the other end of a pipe.
  bool ready();

  /// The share of a regular file, 0..1, that the lines returned so far make up; nothing for other inputs.
  std::optional<double> share() const;
  /// Whether someone types the lines at a terminal.
  bool typed() const { return is_typed(*in_); }

  /// Number of the line last returned, from 1.
  std::int64_t line_number() const { return line_number_; }
  const std::string& name() const { return name_; }
  Position position(std::int64_t column = 0) const { return {name_, line_number_, column}; }

  /// With the policy `replace`: lines keep their own bytes from now on, and the caller replaces what is ill-formed.
  void leave_replacing() { replaces_ = false; }

  std::int64_t invalid_lines() const { return invalid_lines_; }
  /// Logs what was unusual in the input: a note if it began with a byte-order mark, and a warning, with the first
  /// position, if any line held invalid UTF-8.
  void report(Log& log) const;

 private:
  bool take_line(std::string& line);
  bool fill();
  void check_utf8(std::string& line);

  std::unique_ptr<std::istream> owned_;
  std::istream* in_;
  std::string name_;
  InvalidUtf8 policy_;
  std::string buffer_;
  std::size_t at_ = 0, searched_ = 0;  // start of the next line; no LF before `searched_`
  bool ended_ = false, replaces_ = true, marked_ = false;
  std::int64_t line_number_ = 0, invalid_lines_ = 0;
  Position first_invalid_;
};

/// All lines of a file.
std::vector<std::string> read_lines(const std::string& path, InvalidUtf8 policy = InvalidUtf8::replace);

}  // namespace heed
