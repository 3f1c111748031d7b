#include "heed/base/error.h"

#include <cerrno>
#include <system_error>

namespace heed {

std::string Position::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line);
  if (line > 0 && column > 0) out += ":" + std::to_string(column);
  return out;
}

Error::Error(const Position& where, const std::string& message) : std::runtime_error(where.text() + ": " + message) {}

std::string errno_text() {
  return std::generic_category().message(errno);
}

}  // namespace heed
