#include "heed/text/scan.h"

namespace heed {

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

}  // namespace heed
