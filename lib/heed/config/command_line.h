#pragma once

#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/base/line_io.h"
#include "heed/config/fields.h"

namespace heed {

/// An option of another toolkit (Marian, fairseq, ...). If a user types it, the error message names heed's option for
/// the same purpose.
struct PeerOption {
  std::string_view name;  ///< the option's name, without dashes, in kebab-case
  /// The name of heed's option for the same purpose, perhaps with a value ("after 20e"); empty when heed has no such
  /// option.
  std::string_view ours;
  std::string_view toolkit;  ///< the name of the toolkit that has the option, or several names with commas
  /// Tells the user why heed has no such option, or what the user can do instead; empty when heed has such an option.
  std::string_view reason = {};
};

/// What a tool's --help shows about the tool itself (its name, purpose, usage and examples), and the options of other
/// toolkits that the tool's error messages explain.
struct ToolInfo {
  std::string_view name;
  std::string_view purpose;             ///< the tool's purpose, in one line
  std::vector<std::string_view> usage;  ///< usage lines of --help, without the word "usage:"
  std::vector<std::string_view> examples = {};
  std::span<const PeerOption> peers = {};
  /// Whether several processes of the tool, which a launcher such as mpirun has started, work together.
  bool has_ranks = false;
  /// Describes the file `path` if the options let the tool write or remove it though no option names it, such as "a
  /// file of --keep-best"; returns an empty text for all other files. Null for a tool that writes no such files.
  std::string (*further_file)(const FieldList& fields, const std::string& path) = nullptr;
  /// What a user can do if the tool runs out of memory; may be empty.
  std::string_view saves_memory = {};
};

/// The options that every tool has.
struct CommonOptions {
  bool quiet = false;
  bool verbose = false;
  std::string log;
  /// The one-letter form of the option --verbose; 0 when the tool uses -v for another option.
  char verbose_letter = 'v';

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Common");
    visit(quiet, {.name = "quiet", .help = "print only warnings and errors; --log gets all messages", .letter = 'q'});
    visit(verbose, {.name = "verbose", .help = "print more messages", .letter = verbose_letter});
    visit(log, {.name = "log",
                .help = "write messages to FILE instead of stderr",
                .value = "FILE",
                .file = FileUse::appended});
  }
};

/// The options that all tools that read text have.
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

/// Sets a tool's options: first from the file of `--config FILE`, then from the command line `arguments` (without the
/// program's name). If the options depend on the value of one of them (FieldInfo::selects), that option is set before
/// all others, and `fields` is listed anew: pointers to fields from before the call are invalid. For --help, --version
/// and --dump-config, writes the answer to `out` and returns false: the tool then ends. Otherwise returns true. Throws
/// UsageError when an option is unknown (the message names similar options) or when a word belongs to no option.
bool parse_command_line(const ToolInfo& tool, FieldList& fields, std::vector<std::string> arguments, std::ostream& out);
inline bool parse_command_line(const ToolInfo& tool, FieldList&& fields, std::vector<std::string> arguments,
                               std::ostream& out) {
  return parse_command_line(tool, fields, std::move(arguments), out);
}

/// Returns the text that a tool prints for --help. The defaults are those of the fields when they were listed.
std::string help_text(const ToolInfo& tool, const FieldList& fields);

}  // namespace heed
