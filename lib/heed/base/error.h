#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace heed {

/// Where something is wrong; lines and columns count from 1, 0 means unknown.
struct Position {
  std::string file;
  std::int64_t line = 0;
  std::int64_t column = 0;

  /// "file:line:column", leaving out what is unknown.
  std::string text() const;
};

/// Bad data or a failure at run time (exit 1). The message says what is wrong and, in brackets, what to do.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  Error(const Position& where, const std::string& message);

  static constexpr int exit_code = 1;
};

/// A command line that makes no sense (exit 2).
class UsageError : public Error {
 public:
  using Error::Error;
  static constexpr int exit_code = 2;
};

/// The reader of our output is gone (EPIPE): the tool ends silently, as SIGPIPE would end it.
class ClosedPipe : public Error {
 public:
  ClosedPipe() : Error("the reader of the output has closed it") {}
};

/// The description of the current errno value, for "cannot open FILE: REASON".
std::string errno_text();

}  // namespace heed
