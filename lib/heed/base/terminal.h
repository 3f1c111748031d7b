#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The ways in which a heat map on a terminal shows a weight: as a background colour of 24 bits, as one of 256 colours,
/// as Unicode block characters, or as ASCII characters.
enum class Shading { truecolor, palette, blocks, ascii };

/// The user's choice about colours in the output: use colours if the terminal has them, always, or never.
enum class ColorChoice { automatic, always, never };

/// What the process knows about the terminal it writes to, from the file descriptor and from environment variables.
struct TerminalEnvironment {
  bool terminal = false;  ///< true when the output goes to a terminal
  std::string colorterm, term, no_color;

  /// Returns whether the file descriptor `fd` is a terminal, and the values of the environment variables
  /// COLORTERM, TERM and NO_COLOR.
  static TerminalEnvironment of(int fd);
  /// Returns the environment of a tool's output: of standard output for the path "-"; a file is no terminal.
  static TerminalEnvironment of_output(const std::string& path);
};

/// Returns the way in which a heat map is drawn. `automatic` uses colours only on a terminal, without the environment
/// variable NO_COLOR (https://no-color.org), and when the variable COLORTERM or TERM says that the terminal has
/// colours. If `ascii` is true, the result is always Shading::ascii.
Shading choose_shading(ColorChoice choice, bool ascii, const TerminalEnvironment& environment);

/// Returns the width, in columns, of the terminal behind the file descriptor `fd`. If `fd` is not a terminal, returns
/// the value of the environment variable COLUMNS, or 80 without this variable.
int terminal_width(int fd);
/// Returns the width of a tool's output in columns: that of standard output for the path "-", or 80 for a file.
int width_of_output(const std::string& path);

/// Returns a token in a form that is safe to print on a terminal: control characters become the Unicode symbols for
/// them (so that no escape sequence reaches the terminal), a space becomes U+2423, and invisible format characters
/// become U+FFFD. If `ascii` is true, ASCII characters stand for all these, and for SentencePiece's mark U+2581: "_"
/// for a space and for the mark, and "?" for the others. Letters outside ASCII stay as they are.
std::string visible_token(std::string_view token, bool ascii = false);
/// Returns running text in a form that is safe to print on a terminal: control characters are replaced as
/// visible_token() does, but spaces stay spaces.
std::string visible_text(std::string_view text, bool ascii = false);

/// Returns the text with spaces before it, so that it takes `width` terminal columns if it is not wider.
std::string pad_left(std::string_view text, int width);

/// Splits text into the units that a terminal shows as one character. Each unit is a code point with the combining
/// marks that follow the code point.
std::vector<std::string> text_clusters(std::string_view text);

/// Returns the text, cut to `width` terminal columns if it is wider. A text that was cut ends with `mark`.
std::string fit_width(std::string_view text, int width, std::string_view mark = "…");

/// Breaks the text at spaces into lines of at most `width` columns. A word that is longer than a line is cut and ends
/// with `mark`.
std::vector<std::string> wrap_width(std::string_view text, int width, std::string_view mark = "…");

}  // namespace heed
