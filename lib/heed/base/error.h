#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace heed {

/// The place of a mistake in a file: the file's name, the line and the column. Lines and columns count from 1; the
/// value 0 means that the line or the column is unknown.
struct Position {
  std::string file;
  std::int64_t line = 0;
  std::int64_t column = 0;

  /// Returns the place as the text "file:line:column"; a line or a column that is unknown is left out.
  std::string text() const;
};

/// The exception for bad data or a failure at run time: the tool ends with exit status 1. The message says what is
/// wrong and, in brackets, what the user can do. Control characters of quoted data are made visible, because a message
/// ends at a NUL, and a terminal obeys escape sequences.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  Error(const Position& where, const std::string& message);

  static constexpr int exit_code = 1;
};

/// The exception for a mistake within a line of text, thrown where only the line is known. The caller, who knows the
/// file and the number of the line, throws at() in its place.
class LineError : public Error {
 public:
  /// `column` is the place of the mistake in bytes, from 1; 0: the mistake has no place.
  LineError(std::size_t column, const std::string& message) : Error(message), column_(column) {}

  /// Returns the error with its position. `file` and `number` say where `line` was read; `line` must be the line that
  /// the mistake is in.
  Error at(const std::string& file, std::int64_t number, std::string_view line) const;

 private:
  std::size_t column_;
};

/// The exception for a wrong command line, such as an unknown option: the tool ends with exit status 2.
class UsageError : public Error {
 public:
  using Error::Error;
  static constexpr int exit_code = 2;
};

/// The exception that says that the program that reads the tool's output has closed the pipe (EPIPE). The tool then
/// ends without a message, like a process that the signal SIGPIPE ends.
class ClosedPipe : public Error {
 public:
  ClosedPipe() : Error("the reader of the output has closed it") {}
};

/// Returns the operating system's description of the error code errno, such as "No such file or directory", for
/// messages like "cannot open FILE: No such file or directory".
std::string errno_text();

}  // namespace heed
