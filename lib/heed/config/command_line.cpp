#include "heed/config/command_line.h"

#include <algorithm>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>

#include "heed/base/line_io.h"
#include "heed/config/config_file.h"
#include "heed/config/unknown_option.h"

namespace heed {
namespace po = boost::program_options;
namespace {

/// The values of the options that every tool has and that parse_command_line() itself carries out: --help, --version,
/// --dump-config and --config.
struct BuiltIn {
  bool help = false, version = false, dump_config = false;
  std::optional<std::string> config;
};

/// Returns whether a word of the command line is an option and not a value. "-" alone and negative numbers, such as -1
/// or -.5, are values.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

/// Returns whether a word of the command line is meant as the value of a field: a number that is out of range is, too.
/// A field without a value keeps `word` as its value after the test; a field with a value keeps this value.
bool accepts(const Field& field, const std::string& word) {
  if (looks_like_option(word)) return false;
  const bool takes_number = field.kind == Field::Kind::integer || field.kind == Field::Kind::real;
  if (takes_number && word.find_first_not_of("+-.0123456789") == std::string::npos) return true;
  const std::vector<std::string> before = field.get_text();
  try {
    field.set_text(std::span(&word, 1));
  } catch (const UsageError&) {
    return false;
  }
  if (!before.empty()) field.set_text(before);
  return true;
}

/// Throws a UsageError if the option --`option`, which needs a value, stands before another option. Boost would take
/// the other option as the value. `rest` are the words of the command line behind the option.
void check_value(std::string_view option, std::span<const std::string> rest) {
  if (rest.empty() || !looks_like_option(rest[0])) return;
  const std::string name = "--" + std::string(option);
  throw UsageError(name + ": needs a value before '" + rest[0] + "' (" + name + "=" + rest[0] +
                   " makes this word the value)");
}

/// Removes the flags (options without a value) from the front of a word of one-letter options, such as -abc, and
/// appends them to `out` in their long form. Boost would read "bc" as the value of -a. Returns the rest of the word,
/// with its dash, or an empty string when all letters were flags.
std::string take_flags(const FieldList& fields, std::string word, std::vector<std::string>& out) {
  while (word.size() > 1) {
    const Field* field = fields.find_letter(word[1]);
    if (!field || field->kind != Field::Kind::flag || (word.size() > 2 && word[2] == '=')) return word;
    out.push_back("--" + std::string(field->info.name) + "=true");
    word.erase(1, 1);
  }
  return {};
}

/// Rewrites the words of the command line into a form that Boost.Program_options understands: `_` becomes `-`, an alias
/// with one dash becomes the long option, --no-X becomes --X=false, and an option that the user gives without its
/// optional value gets FieldInfo::implicit as its value.
std::vector<std::string> normalise(const ToolInfo& tool, const FieldList& fields,
                                   const std::vector<std::string>& words) {
  const auto takes_words = [](const Field& field) { return field.info.positional; };
  const bool has_positional = std::any_of(fields.all().begin(), fields.all().end(), takes_words);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      out.insert(out.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    if (!looks_like_option(word)) {
      out.push_back(word);
      continue;
    }
    const auto equals = word.find('=');
    const bool has_value = equals != std::string::npos;
    std::string name = word.substr(0, equals);
    const bool one_dash = name[1] != '-';
    name.erase(0, one_dash ? 1 : 2);
    const Field* field = nullptr;
    bool negated = false;
    if (one_dash) {
      std::replace(name.begin(), name.end(), '_', '-');
      field = fields.find(name);
      if (!field || field->info.alias != name) {
        // Boost would read -model as the option -m with the value "odel", so the user gets an error instead.
        if (name.size() > 2 && (field || find_peer_option(tool, name))) fail_unknown_option(tool, fields, "-" + name);
        const std::string rest = take_flags(fields, word, out);
        if (rest.empty()) continue;
        field = fields.find_letter(rest[1]);
        if (!field && rest[1] != 'h') fail_unknown_option(tool, fields, rest == word ? "-" + name : rest.substr(0, 2));
        if (!field || rest.size() > 2 || field->info.implicit.empty()) {
          if (field && rest.size() == 2) check_value(field->info.name, std::span(words).subspan(i + 1));
          out.push_back(rest);  // Boost splits a word such as -oFILE into the option -o and the value FILE
          continue;
        }
      }
    } else {
      std::replace(name.begin(), name.end(), '_', '-');
      field = fields.find(name);
      if (!field && name.starts_with("no-")) {
        field = fields.find(name.substr(3));
        negated = field && field->kind == Field::Kind::flag;
        if (!negated) field = nullptr;
      }
      const bool built_in = is_built_in(name);
      if (!field && !built_in) fail_unknown_option(tool, fields, "--" + name);
      if (built_in) {
        if (name == "config" && !has_value) check_value(name, std::span(words).subspan(i + 1));
        out.push_back(word);
        continue;
      }
    }
    const std::string full = "--" + std::string(field->info.name);
    if (negated) {
      if (has_value) throw UsageError("--" + name + ": takes no value");
      out.push_back(full + "=false");
    } else if (has_value) {
      out.push_back(full + word.substr(equals));
    } else if (field->kind == Field::Kind::flag) {
      out.push_back(full + "=true");
    } else if (!field->info.implicit.empty()) {
      // In a tool that takes words only as values of options, any word is meant as the value.
      const bool follows =
          i + 1 < words.size() && (has_positional ? accepts(*field, words[i + 1]) : !looks_like_option(words[i + 1]));
      out.push_back(full + "=" + (follows ? words[++i] : std::string(field->info.implicit)));
    } else {
      check_value(field->info.name, std::span(words).subspan(i + 1));
      out.push_back(full);
    }
  }
  return out;
}

std::string boost_name(const Field& field) {
  std::string name(field.info.name);
  if (field.info.letter) name += std::string(",") + field.info.letter;
  return name;
}

/// Adds an option for each field to Boost's description of the options. For Boost all values are words; heed itself
/// checks the values.
void describe(const FieldList& fields, po::options_description& all) {
  for (const Field& field : fields.all()) {
    auto* value = po::value<std::vector<std::string>>();
    if (field.kind == Field::Kind::list && !field.info.repeated) value->multitoken();
    if (field.kind == Field::Kind::flag) value->implicit_value({"true"}, "true");
    all.add_options()(boost_name(field).c_str(), value, "");
  }
}

/// Throws a UsageError for the word `word` on the command line that belongs to no option, in a tool that takes words
/// only as values of options.
[[noreturn]] void fail_word(const ToolInfo& tool, const FieldList& fields, const std::string& word) {
  throw UsageError("'" + word + "' belongs to no option (" +
                   (fields.find("input") ? "-i " + word + " or < " + word + " reads a file"
                                         : "usage: " + std::string(tool.usage.at(0))) +
                   ")");
}

/// Sets the fields to the values that Boost has read from the command line.
void apply(const ToolInfo& tool, const FieldList& fields, const po::parsed_options& parsed) {
  // The words for each field whose value is a list. If the user gives the option several times, the list gets the words
  // of all times.
  std::map<const Field*, std::vector<std::string>> lists;
  std::vector<const Field*> set;
  for (const auto& given : parsed.options) {
    if (given.string_key.empty()) fail_word(tool, fields, given.value.at(0));
    if (is_built_in(given.string_key)) continue;
    const Field* field = fields.find(given.string_key);
    field->given = true;
    set.push_back(field);
    if (field->info.positional || field->kind == Field::Kind::list) {
      auto& words = lists[field];
      words.insert(words.end(), given.value.begin(), given.value.end());
    } else {
      field->set_text(given.value);
      // --no-X takes a flag back that a configuration file has set.
      if (field->kind == Field::Kind::flag && field->get_text() == field->initial) field->given = false;
    }
  }
  for (const auto& [field, words] : lists) field->set_text(words);
  fields.set_spelt(set);
}

po::parsed_options parse_words(const FieldList& fields, const std::vector<std::string>& words) {
  po::options_description all;
  describe(fields, all);
  auto* none = new po::untyped_value(true);
  auto* no_version = new po::untyped_value(true);
  auto* no_dump = new po::untyped_value(true);
  all.add_options()("help,h", none, "")("version", no_version, "")("dump-config", no_dump, "")(
      "config", po::value<std::string>(), "");
  po::positional_options_description positional;
  for (const Field& field : fields.all())
    if (field.info.positional) positional.add(std::string(field.info.name).c_str(), -1);
  namespace style = po::command_line_style;
  po::command_line_parser parser(words);
  parser.options(all).style(style::unix_style & ~style::allow_guessing);
  // If no field takes the words that belong to no option, Boost returns such words as options with an empty name.
  if (positional.max_total_count() > 0) parser.positional(positional);
  return parser.run();
}

/// Returns the last value that the command line gives to an option with the long form `name` or with `alias`, or
/// nothing. Needs no list of the options, because no option takes a word that looks like an option as its value
/// (check_value()).
std::optional<std::string> last_value(const std::vector<std::string>& words, std::string_view name,
                                      std::string_view alias = {}) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (!looks_like_option(words[i])) continue;
    const auto equals = words[i].find('=');
    std::string option = words[i].substr(0, equals);
    const bool one_dash = option[1] != '-';
    option.erase(0, one_dash ? 1 : 2);
    std::replace(option.begin(), option.end(), '_', '-');
    if ((one_dash || option != name) && (alias.empty() || option != alias)) continue;
    if (equals != std::string::npos)
      value = words[i].substr(equals + 1);
    else if (i + 1 < words.size() && !looks_like_option(words[i + 1]))
      value = words[i + 1];
  }
  return value;
}

/// Sets the field on whose value other fields depend, if there is one, from the command line or else from the file of
/// --config, and lists the fields anew. Returns the file of --config if it had to be read.
std::optional<ConfigFile> select(FieldList& fields, const std::vector<std::string>& words) {
  std::optional<ConfigFile> file;
  const Field* const selector = fields.selector();
  if (!selector) return file;
  if (const auto value = last_value(words, selector->info.name, selector->info.alias)) {
    fields.select(*value);
  } else if (const auto path = last_value(words, "config"); path && !path->empty()) {
    file.emplace(*path);
    file->select(fields);
  }
  return file;
}

}  // namespace

bool parse_command_line(const ToolInfo& tool, FieldList& listed, std::vector<std::string> arguments,
                        std::ostream& out) {
  std::optional<ConfigFile> config = select(listed, arguments);
  const FieldList& fields = listed;  // const: pointers to fields stay valid from here on
  const std::vector<std::string> words = normalise(tool, fields, arguments);
  BuiltIn built_in;
  try {
    const po::parsed_options parsed = parse_words(fields, words);
    for (const auto& given : parsed.options) {
      if (given.string_key == "help") built_in.help = true;
      if (given.string_key == "version") built_in.version = true;
      if (given.string_key == "dump-config") built_in.dump_config = true;
      if (given.string_key == "config") built_in.config = given.value.at(0);
    }
    if (built_in.help) {
      out << help_text(tool, fields);
      return false;
    }
    if (built_in.version) {
      out << tool.name << " (heed) " << HEED_VERSION << '\n';
      return false;
    }
    if (built_in.config == "") throw UsageError("--config: the name of the file is empty (name a file)");
    if (!config && built_in.config) config.emplace(*built_in.config);
    if (config) config->apply(tool, fields);
    listed.set_config_file(built_in.config.value_or(""));
    apply(tool, fields, parsed);
    const Field* quiet = fields.find("quiet");
    if (config && config->marked() && !(quiet && quiet->get_text() == std::vector<std::string>{"true"}))
      std::cerr << tool.name << ": " << byte_order_mark_note(fields.config_file()) << '\n';
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
  if (built_in.dump_config) {
    out << dump_config(fields);
    return false;
  }
  return true;
}

namespace {

/// Returns the lines about one option in the text of --help: the option with its value at the left, the explanation at
/// the right.
std::string help_of(const Field& field) {
  std::string left = field.info.letter ? std::string("  -") + field.info.letter + ", " : "      ";
  left += "--" + std::string(field.info.name);
  std::string value(field.info.value);
  if (value.empty() && !field.choices.empty())
    for (const auto choice : field.choices) value += (value.empty() ? "" : "|") + std::string(choice);
  if (value.empty() && field.kind != Field::Kind::flag) value = field.kind == Field::Kind::integer ? "N" : "X";
  if (field.kind != Field::Kind::flag) left += field.info.implicit.empty() ? " " + value : " [" + value + "]";
  if (field.kind == Field::Kind::list && !field.info.repeated && field.info.value.find(' ') == std::string_view::npos)
    left += "...";

  std::string right(field.info.help);
  std::string notes;
  const auto note = [&](const std::string& text) { notes += (notes.empty() ? "" : "; ") + text; };
  if (!field.info.alias.empty())
    note((field.info.alias.size() > 4 ? "also --" : "also -") + std::string(field.info.alias));
  if (std::isfinite(field.info.min) || std::isfinite(field.info.max)) {
    const auto bound = [](double x) { return std::isfinite(x) ? fields_detail::show_real(x) : std::string(); };
    note(bound(field.info.min) + ".." + bound(field.info.max));
  }
  std::string fallback;
  for (const auto& text : field.initial) fallback += (fallback.empty() ? "" : " ") + text;
  if (!fallback.empty() && !(field.kind == Field::Kind::flag && fallback == "false")) note("default " + fallback);
  if (!notes.empty()) right += " (" + notes + ")";
  constexpr std::size_t kColumn = 34;
  return left.size() + 1 < kColumn ? left + std::string(kColumn - left.size(), ' ') + right + "\n"
                                   : left + "\n" + std::string(kColumn, ' ') + right + "\n";
}

}  // namespace

std::string help_text(const ToolInfo& tool, const FieldList& fields) {
  std::string out = std::string(tool.name) + " - " + std::string(tool.purpose) + "\n\n";
  for (std::size_t i = 0; i < tool.usage.size(); ++i)
    out += (i == 0 ? "usage: " : "       ") + std::string(tool.usage[i]) + "\n";
  std::string_view section;
  for (const Field& field : fields.all()) {
    if (field.info.positional) continue;
    if (field.section != section) out += "\n" + std::string(field.section) + ":\n";
    section = field.section;
    out += help_of(field);
  }
  out += "\nAbout this tool:\n";
  out += "  -h, --help                      show this text\n";
  out += "      --version                   show the version\n";
  out += "      --config FILE               read options from FILE (name = value; the command line wins)\n";
  out += "      --dump-config               show the options that have a value, in the form of --config\n";
  if (!tool.examples.empty()) out += "\nExamples:\n";
  for (const auto example : tool.examples) out += "  " + std::string(example) + "\n";
  return out;
}

}  // namespace heed
