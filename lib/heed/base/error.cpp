#include "heed/base/error.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace heed {
namespace {

/// Returns a message with the Unicode symbols (U+2400 and following) for the control characters of ASCII, except for
/// line feeds and TABs. All other bytes stay as they are. (The module for MPI consists of this file and one other, so
/// that nothing of heed's own can be called here.)
std::string visible_controls(std::string_view message) {
  std::string out;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0x7F)
      out += "\u2421";
    else if (byte < 0x20 && c != '\n' && c != '\t')
      (out += "\xE2\x90") += static_cast<char>(0x80 + byte);  // U+2400 + byte in UTF-8
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string Position::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line);
  if (line > 0 && column > 0) out += ":" + std::to_string(column);
  return out;
}

Error::Error(const std::string& message) : std::runtime_error(visible_controls(message)) {}

Error::Error(const Position& where, const std::string& message) : Error(where.text() + ": " + message) {}

Error LineError::at(const std::string& file, std::int64_t number, std::string_view line) const {
  if (column_ == 0) return Error({file, number}, what());
  // The bytes that begin a character are those that do not continue one.
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return Error({file, number, 1 + std::ranges::count_if(line.substr(0, column_ - 1), begins)}, what());
}

std::string errno_text() {
  return std::generic_category().message(errno);
}

}  // namespace heed
