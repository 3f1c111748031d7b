#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The ways in which a heat map on a terminal shows a weight: as a background colour of 24 bits, as one of 256 colours,
/// as Unicode block characters, or as ASCII characters.
enum class Shading { truecolor, palette, blocks, ascii };

/// What the user wants of colours: use them where the terminal has them, always, or never.
enum class ColorChoice { automatic, always, never };

/// The facts about a terminal that the environment knows.
struct TerminalEnvironment {
  bool terminal = false;  ///< true when the output goes to a terminal
  std::string colorterm, term, no_color;

  /// Returns the facts about file descriptor `fd` and the variables COLORTERM, TERM and NO_COLOR.
  static TerminalEnvironment of(int fd);
};

/// Returns how a heat map is drawn. `automatic` uses colours only on a terminal, without the variable NO_COLOR
/// (https://no-color.org), and when COLORTERM or TERM says that the terminal has colours. `ascii` true always gives
/// Shading::ascii.
Shading choose_shading(ColorChoice choice, bool ascii, const TerminalEnvironment& environment);

/// Returns the width in columns of the terminal behind `fd`; without a terminal the value of the variable COLUMNS, else
/// 80.
int terminal_width(int fd);

/// Returns a token in a form that is safe to show: control characters become their Unicode pictures (so that no escape
/// sequence reaches the terminal), a space becomes U+2423, and invisible format characters become U+FFFD.
std::string visible_token(std::string_view token);
/// Returns running text in a form that is safe to show: like visible_token(), but spaces stay spaces.
std::string visible_text(std::string_view text);

/// Splits text into the units that a terminal cursor moves over: each is a code point with the combining marks after
/// it.
std::vector<std::string> text_clusters(std::string_view text);

/// Returns the text cut to `width` columns; a text that was cut ends with `mark`.
std::string fit_width(std::string_view text, int width, std::string_view mark = "…");

/// Breaks the text at spaces into lines of at most `width` columns. A word that is longer than a line is cut as
/// fit_width() does.
std::vector<std::string> wrap_width(std::string_view text, int width, std::string_view mark = "…");

}  // namespace heed
