#include "heed/base/error.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "heed/base/terminal.h"

namespace heed {

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
