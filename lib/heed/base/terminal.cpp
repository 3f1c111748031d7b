#include "heed/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "heed/base/utf8.h"

namespace heed {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_format_character(char32_t c) {
  return c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

std::string visible(std::string_view text, std::string_view space, bool ascii) {
  constexpr char32_t kWordStart = 0x2581;  // SentencePiece's mark of a space
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = decode_utf8(text, at);
    const bool control = c < 0x20 || c == 0x7F, format = (c >= 0x80 && c < 0xA0) || is_format_character(c);
    if (c == ' ' || c == 0xA0)
      out += space;
    else if (ascii && c == kWordStart)
      out += '_';
    else if (ascii && (control || format || c == kReplacementCharacter))
      out += '?';
    else if (control)
      append_utf8(out, c == 0x7F ? 0x2421 : 0x2400 + c);
    else if (format)
      append_utf8(out, kReplacementCharacter);
    else
      append_utf8(out, c);
  }
  return out;
}

}  // namespace

TerminalEnvironment TerminalEnvironment::of(int fd) {
  return {::isatty(fd) == 1, variable("COLORTERM"), variable("TERM"), variable("NO_COLOR")};
}

TerminalEnvironment TerminalEnvironment::of_output(const std::string& path) {
  TerminalEnvironment out = of(STDOUT_FILENO);
  out.terminal = out.terminal && path == "-";
  return out;
}

Shading choose_shading(ColorChoice choice, bool ascii, const TerminalEnvironment& environment) {
  if (ascii) return Shading::ascii;
  const std::string& term = environment.term;
  const bool truecolor = environment.colorterm == "truecolor" || environment.colorterm == "24bit" ||
                         term.find("direct") != std::string::npos;
  const bool palette = term.find("256color") != std::string::npos || !environment.colorterm.empty();
  if (choice == ColorChoice::always) return truecolor ? Shading::truecolor : Shading::palette;
  if (choice == ColorChoice::never || !environment.terminal || !environment.no_color.empty()) return Shading::blocks;
  if (term == "dumb") return Shading::ascii;
  return truecolor ? Shading::truecolor : palette ? Shading::palette : Shading::blocks;
}

int terminal_width(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const int columns = std::atoi(variable("COLUMNS").c_str());
  return columns > 0 ? columns : 80;
}

int width_of_output(const std::string& path) {
  return path == "-" ? terminal_width(STDOUT_FILENO) : 80;
}

std::string visible_token(std::string_view token, bool ascii) {
  return visible(token, ascii ? "_" : "␣", ascii);
}

std::string visible_text(std::string_view text, bool ascii) {
  return visible(text, " ", ascii);
}

std::string pad_left(std::string_view text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ').append(text);
}

std::vector<std::string> text_clusters(std::string_view text) {
  std::vector<std::string> clusters;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    decode_utf8(text, at);
    const std::string_view one = text.substr(begin, at - begin);
    if (!clusters.empty() && display_width(one) == 0)
      clusters.back() += one;
    else
      clusters.emplace_back(one);
  }
  return clusters;
}

std::string fit_width(std::string_view text, int width, std::string_view mark) {
  if (display_width(text) <= width) return std::string(text);
  const int room = width - display_width(mark);
  std::string out;
  int used = 0;
  for (const std::string& cluster : text_clusters(text)) {
    used += display_width(cluster);
    if (used > room) break;
    out += cluster;
  }
  return room >= 0 ? out + std::string(mark) : out;
}

std::vector<std::string> wrap_width(std::string_view text, int width, std::string_view mark) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= width)
      lines.back().append(1, ' ').append(word);
    else
      lines.push_back(fit_width(word, width, mark));
  }
  return lines;
}

}  // namespace heed
