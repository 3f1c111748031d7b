#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace heed {

/// Holds the place of a mistake in a file. Lines and columns count from 1; 0 means that the number is unknown.
struct Position {
  std::string file;
  std::int64_t line = 0;
  std::int64_t column = 0;

  /// Returns "file:line:column", without the numbers that are unknown.
  std::string text() const;
};

/// Reports bad data or a failure at run time: the tool ends with exit status 1. The message says what is wrong and, in
/// brackets, what the user can do.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  Error(const Position& where, const std::string& message);

  static constexpr int exit_code = 1;
};

/// Reports a command line that makes no sense: the tool ends with exit status 2.
class UsageError : public Error {
 public:
  using Error::Error;
  static constexpr int exit_code = 2;
};

/// Reports that the reader of the tool's output has closed the pipe (EPIPE). The tool then ends silently, as the signal
/// SIGPIPE would end the tool.
class ClosedPipe : public Error {
 public:
  ClosedPipe() : Error("the reader of the output has closed it") {}
};

/// Returns the system's description of the present errno, as the REASON in "cannot open FILE: REASON".
std::string errno_text();

}  // namespace heed
