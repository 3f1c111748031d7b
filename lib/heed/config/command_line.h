#pragma once

#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/line_io.h"
#include "heed/config/fields.h"

namespace heed {

/// An option of another toolkit, as users of that toolkit type it.
struct PeerOption {
  std::string_view name;         ///< without dashes, kebab-case
  std::string_view ours;         ///< our option for it, perhaps with a value ("after 20e"); empty: heed has none
  std::string_view toolkit;      ///< or several, with commas
  std::string_view reason = {};  ///< where heed has none: why, or what to do instead
};

/// What --help says of a tool apart from its fields.
struct ToolInfo {
  std::string_view name;
  std::string_view purpose;             ///< one line
  std::vector<std::string_view> usage;  ///< lines, without "usage:"
  std::vector<std::string_view> examples = {};
  std::span<const PeerOption> peers = {};
};

/// Options every tool has.
struct CommonOptions {
  bool quiet = false;
  bool verbose = false;
  std::string log;
  char verbose_letter = 'v';  ///< 0 where the tool needs -v for something else

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Common");
    visit(quiet, {.name = "quiet", .help = "say nothing but warnings and errors", .letter = 'q'});
    visit(verbose, {.name = "verbose", .help = "say more", .letter = verbose_letter});
    visit(log, {.name = "log", .help = "write messages to FILE instead of stderr", .value = "FILE"});
  }
};

/// For the tools that read text.
struct Utf8Options {
  InvalidUtf8 on_invalid_utf8 = InvalidUtf8::replace;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(on_invalid_utf8, {.name = "on-invalid-utf8",
                            .help = "bytes that are not UTF-8: replace by U+FFFD, keep, or fail at the first"});
  }
};

template <>
struct EnumNames<InvalidUtf8> {
  static constexpr std::pair<InvalidUtf8, std::string_view> values[] = {
      {InvalidUtf8::replace, "replace"}, {InvalidUtf8::keep, "keep"}, {InvalidUtf8::fail, "fail"}};
};

/// Sets the fields from `--config FILE` and then the command line (without the program's name). Handles --help,
/// --version and --dump-config by writing to `out`; then, and only then, returns false. Throws UsageError that names
/// the option and similar known ones, or the word that belongs to no option.
bool parse_command_line(const ToolInfo& tool, const FieldList& fields, std::vector<std::string> arguments,
                        std::ostream& out);

/// The text of --help.
std::string help_text(const ToolInfo& tool, const FieldList& fields);

}  // namespace heed
