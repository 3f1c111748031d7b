#pragma once

#include <optional>

#include "heed/base/terminal.h"
#include "heed/config/fields.h"

namespace heed {

template <>
struct EnumNames<ColorChoice> {
  static constexpr std::pair<ColorChoice, std::string_view> values[] = {
      {ColorChoice::automatic, "auto"}, {ColorChoice::always, "always"}, {ColorChoice::never, "never"}};
};

/// The options of the programs that draw pictures with characters.
struct TerminalOptions {
  std::optional<int> width = {};
  bool ascii = false;
  ColorChoice color = ColorChoice::automatic;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(width, {.name = "width",
                  .help = "columns of what is drawn with characters (the terminal's if not given)",
                  .value = "N",
                  .min = 20,
                  .max = 10000});
    visit(ascii, {.name = "ascii", .help = "draw with ASCII characters"});
    visit(color,
          {.name = "color", .help = "draw in colours; auto decides by the terminal, NO_COLOR, COLORTERM and TERM"});
  }

  /// Throws UsageError if the options contradict each other.
  void validate() const {
    if (ascii && color == ColorChoice::always)
      throw UsageError("--color always: has no use with --ascii (leave one of them out)");
  }
  Shading shading(const TerminalEnvironment& environment) const { return choose_shading(color, ascii, environment); }
};

}  // namespace heed
