#include "heed/base/error.h"

#include <cerrno>
#include <system_error>

#include "heed/base/utf8.h"

namespace heed {

std::string Position::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line);
  if (line > 0 && column > 0) out += ":" + std::to_string(column);
  return out;
}

Error::Error(const Position& where, const std::string& message) : std::runtime_error(where.text() + ": " + message) {}

Error LineError::at(const std::string& file, std::int64_t number, std::string_view line) const {
  const std::size_t before = column_ == 0 ? 0 : count_code_points(line.substr(0, column_ - 1)) + 1;
  return Error({file, number, static_cast<std::int64_t>(before)}, what());
}

std::string errno_text() {
  return std::generic_category().message(errno);
}

}  // namespace heed
