#include <algorithm>
#include <sstream>

#include "fuzz.h"
#include "heed/base/line_io.h"
#include "heed/base/utf8.h"
#include "heed/run/line_pipeline.h"

// Tests on random bytes that a LineReader returns as many lines as the input has line feeds, and one more for a last
// line without a line feed. This must hold for any number of threads and any policy for ill-formed UTF-8. A byte-order
// mark at the start is not text.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace heed;
  fuzz::Input input(data, size);
  const InvalidUtf8 policy = input.flip() ? InvalidUtf8::keep : InvalidUtf8::replace;
  const int threads = 1 + static_cast<int>(input.choose(2));
  std::string text = input.rest();
  std::istringstream in(text);
  try {
    take_byte_order_mark(text, {});
  } catch (const Error&) {
    // gzip, UTF-16 and other formats are refused by their first bytes.
    return 0;
  }
  LineReader reader(in, "input", policy);
  std::string out;
  std::int64_t lines = 0;
  run_line_pipeline(reader, threads,
                    {.work =
                         [&](const std::string& line, std::int64_t, std::string& to) {
                           fuzz::require(line.find('\n') == std::string::npos, "a line holds no line feed");
                           fuzz::require(policy == InvalidUtf8::keep || find_invalid_utf8(line) == std::string::npos,
                                         "replaced lines are UTF-8");
                           to.append(line).append(1, '\n');
                         },
                     .take =
                         [&](const std::string& part, std::int64_t count) {
                           out += part;
                           lines += count;
                         }});
  const auto feeds = std::count(text.begin(), text.end(), '\n');
  const std::int64_t expected = feeds + (!text.empty() && text.back() != '\n' ? 1 : 0);
  fuzz::require(lines == expected && reader.line_number() == expected, "lines out are lines in");
  fuzz::require(std::count(out.begin(), out.end(), '\n') == expected, "line feeds out are lines in");
  return 0;
}
