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

/// How a reader treats bytes that are not UTF-8: it replaces them by U+FFFD, keeps them, or throws Error.
enum class InvalidUtf8 { replace, keep, fail };

/// Removes a byte-order mark (U+FEFF in UTF-8) from the first line of a text and returns whether the line had a mark.
/// Throws Error, with advice, when the line begins like text in another encoding or like compressed data.
bool take_byte_order_mark(std::string& first_line, const Position& where);
/// Returns the message for the user that says that a byte-order mark at the start of the file `name` was skipped.
std::string byte_order_mark_note(const std::string& name);
/// Logs a message when the regular file `path` begins with a byte-order mark. Tools call this function for files that a
/// function without a Log object reads.
void tell_of_byte_order_mark(const std::string& path, Log& log);

/// Reads text line by line, by the rules for lines that all tools share. Only LF ends a line; the CR of a CRLF is
/// dropped; U+2028, NUL, a bare CR and a TAB are text; a last line without LF counts as a line. A byte-order mark at
/// the start of the input is not text: columns count from the character after the mark. A line longer than
/// kMaxLineBytes is an error that names the line, so that a file without line ends cannot exhaust the memory.
class LineReader {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

  /// Opens a file, a .gz file or stdin ("-" or "") for reading.
  explicit LineReader(const std::string& path, InvalidUtf8 policy = InvalidUtf8::replace);
  /// Reads lines from a stream that is already open. Error messages call the stream `name`.
  LineReader(std::istream& in, std::string name, InvalidUtf8 policy = InvalidUtf8::replace);

  /// Reads the next line, without the line end, into `line`. Returns false at the end of the input. Throws Error when
  /// reading fails, or when the line is not valid UTF-8 and the policy is InvalidUtf8::fail.
  bool next(std::string& line);
  /// Returns whether next() would return at once, without waiting for more input from a pipe or a terminal.
  bool ready();

  /// Returns the fraction, 0..1, of a regular file's bytes that has been read for the lines returned so far. Returns
  /// nothing when the input is not a regular file.
  std::optional<double> share() const;
  /// Returns whether the input is a terminal at which a person types the lines.
  bool typed() const { return is_typed(*in_); }

  /// Returns the line number of the line that next() returned last. The first line has the number 1.
  std::int64_t line_number() const { return line_number_; }
  const std::string& name() const { return name_; }
  Position position(std::int64_t column = 0) const { return {name_, line_number_, column}; }

  /// Makes next() return lines whose ill-formed UTF-8 bytes are unchanged, also under the policy InvalidUtf8::replace.
  /// The caller then replaces the ill-formed bytes: the tool `tokenize` does so to count byte offsets in the unchanged
  /// line.
  void leave_replacing() { replaces_ = false; }

  std::int64_t invalid_lines() const { return invalid_lines_; }
  /// Returns the number of the first line with ill-formed bytes that was read, or 0.
  std::int64_t first_invalid_line() const { return first_invalid_.line; }
  /// Logs what was unusual in the input: a note if the input began with a byte-order mark, and a warning, with the
  /// position of the first ill-formed byte, if any line was not valid UTF-8.
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
  // `at_` is the index in `buffer_` where the next line starts. The bytes from `at_` to `searched_` are known to hold
  // no line feed, so that the search for the line's end continues at `searched_`.
  std::size_t at_ = 0, searched_ = 0;
  bool ended_ = false, replaces_ = true, marked_ = false;
  std::int64_t line_number_ = 0, invalid_lines_ = 0;
  Position first_invalid_;
};

/// Opens the input that an option names: `in` for "-" and "", otherwise the file `path`.
LineReader open_lines(const std::string& path, std::istream& in, InvalidUtf8 policy);

/// Throws the Error that one of two inputs has fewer lines than the other, where line N of both belong together. The
/// message has both numbers of lines, for which both inputs are first read to their ends. An input that is no regular
/// file may be endless: reading stops after another 32 MiB, and the message says that there are more lines than were
/// counted. `rule` says why the numbers must be equal.
[[noreturn]] void fail_unequal(LineReader& one, LineReader& other, const std::string& rule);

/// Returns all lines of the file `path`; `policy` says how bytes that are not UTF-8 are treated.
std::vector<std::string> read_lines(const std::string& path, InvalidUtf8 policy = InvalidUtf8::replace);

}  // namespace heed
