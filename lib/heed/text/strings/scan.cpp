#include "heed/text/strings/scan.h"

namespace heed {

char* copy_squeezed(std::string_view text, char* put, bool& after_space) {
  std::size_t at = 0;
  // Copies the bytes of the text from the offset `at` to before the offset `end` one by one, and leaves out each space
  // that follows another space.
  const auto one_by_one = [&](std::size_t end) {
    for (; at < end; ++at) {
      const char c = text[at];
      *put = c;
      put += c != ' ' || !after_space;
      after_space = c == ' ';
    }
  };
  while (at + 8 <= text.size()) {
    const std::uint64_t spaces = equal_bytes(load_bytes(text.data() + at), ' ');
    if (repeats_space(spaces, after_space)) {
      one_by_one(at + 8);
      continue;
    }
    char bytes[8];
    std::memcpy(bytes, text.data() + at, 8);
    std::memcpy(put, bytes, 8);
    put += 8, at += 8;
    after_space = spaces >> 63;
  }
  one_by_one(text.size());
  return put;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  auto found = text.find(from);
  if (found == std::string::npos) return;
  std::string out;
  out.reserve(text.size() + to.size());
  std::size_t copied = 0;
  for (; found != std::string::npos; found = text.find(from, copied)) {
    out.append(text, copied, found - copied).append(to);
    copied = found + from.size();
  }
  text = out.append(text, copied);
}

std::string tsv_field(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace heed
