#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// How a terminal heat map shows a weight: the background in 24-bit or 256 colours, or characters alone.
enum class Shading { truecolor, palette, blocks, ascii };

enum class ColorChoice { automatic, always, never };

/// What the environment says of the terminal.
struct TerminalEnvironment {
  bool terminal = false;  ///< the output is one
  std::string colorterm, term, no_color;

  /// From file descriptor `fd` and COLORTERM, TERM and NO_COLOR.
  static TerminalEnvironment of(int fd);
};

/// `automatic` needs a terminal, no NO_COLOR (https://no-color.org), and a COLORTERM or TERM that promises colours;
/// `ascii` rules out everything else.
Shading choose_shading(ColorChoice choice, bool ascii, const TerminalEnvironment& environment);

/// The columns of the terminal behind `fd`, else the variable COLUMNS, else 80.
int terminal_width(int fd);

/// The token as it can be shown: control characters as their pictures (an escape sequence must not reach the
/// terminal), a space as U+2423, invisible format characters as U+FFFD.
std::string visible_token(std::string_view token);
/// The same for running text, where spaces stay.
std::string visible_text(std::string_view text);

/// What a terminal moves by at once: each code point with the combining marks behind it.
std::vector<std::string> text_clusters(std::string_view text);

/// The text cut to `width` columns, with `mark` at the end where something is missing.
std::string fit_width(std::string_view text, int width, std::string_view mark = "…");

/// The text in lines of at most `width` columns, broken at its spaces; a longer word is cut like fit_width() does.
std::vector<std::string> wrap_width(std::string_view text, int width, std::string_view mark = "…");

}  // namespace heed
