#include "heed/config/command_line.h"

#include <algorithm>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>

#include "heed/base/line_io.h"

namespace heed {
namespace po = boost::program_options;
namespace {

constexpr std::string_view kBuiltIn[] = {"help", "version", "config", "dump-config"};

/// The options that are about the command line itself.
struct BuiltIn {
  bool help = false, version = false, dump_config = false;
  std::string config;
};

const Field* find_letter(const FieldList& fields, char letter) {
  for (const Field& field : fields.all())
    if (field.info.letter == letter) return &field;
  return nullptr;
}

[[noreturn]] void fail_unknown(const ToolInfo& tool, const FieldList& fields, const std::string& name) {
  for (const auto& hint : tool.hints)
    if (hint.foreign == name)
      throw UsageError("unknown option --" + name + ": did you mean --" + std::string(hint.ours) + "? (" +
                       std::string(hint.toolkit) + ")");
  const std::string nearest = fields.nearest(name);
  throw UsageError("unknown option --" + name +
                   (nearest.empty() ? " (--help lists them)" : ": did you mean --" + nearest + "?"));
}

bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

bool accepts(const Field& field, const std::string& word) {
  if (looks_like_option(word)) return false;
  const std::vector<std::string> before = field.get_text();
  try {
    field.set_text(std::span(&word, 1));
  } catch (const UsageError&) {
    return false;
  }
  if (!before.empty()) field.set_text(before);
  return true;
}

/// Takes the flags off the front of `-abc` (Boost would read the rest as the flag's value); what is left, with its
/// dash, or nothing.
std::string take_flags(const FieldList& fields, std::string word, std::vector<std::string>& out) {
  while (word.size() > 1) {
    const Field* field = find_letter(fields, word[1]);
    if (!field || field->kind != Field::Kind::flag || (word.size() > 2 && word[2] == '=')) return word;
    out.push_back("--" + std::string(field->info.name) + "=true");
    word.erase(1, 1);
  }
  return {};
}

/// Rewrites what Boost does not know: `_` for `-`, aliases with one dash, --no-X, options whose value may be left out.
std::vector<std::string> normalise(const ToolInfo& tool, const FieldList& fields,
                                   const std::vector<std::string>& words) {
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
      field = fields.find(name);
      if (!field || field->info.alias != name) {
        const std::string rest = take_flags(fields, word, out);
        if (rest.empty()) continue;
        field = find_letter(fields, rest[1]);
        if (!field || rest.size() > 2 || field->info.implicit.empty()) {
          out.push_back(rest);  // Boost splits -oFILE
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
      const bool built_in = std::find(std::begin(kBuiltIn), std::end(kBuiltIn), name) != std::end(kBuiltIn);
      if (!field && !built_in) fail_unknown(tool, fields, name);
      if (built_in) {
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
      const bool follows = i + 1 < words.size() && accepts(*field, words[i + 1]);
      out.push_back(full + "=" + (follows ? words[++i] : std::string(field->info.implicit)));
    } else {
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

void describe(const FieldList& fields, po::options_description& all) {
  for (const Field& field : fields.all()) {
    auto* value = po::value<std::vector<std::string>>();
    if (field.kind == Field::Kind::list && !field.info.repeated) value->multitoken();
    if (field.kind == Field::Kind::flag) value->implicit_value({"true"}, "true");
    all.add_options()(boost_name(field).c_str(), value, "");
  }
}

void apply(const ToolInfo& tool, const FieldList& fields, const po::parsed_options& parsed) {
  std::map<const Field*, std::vector<std::string>> lists;  // given several times, a list grows
  for (const auto& given : parsed.options) {
    if (std::find(std::begin(kBuiltIn), std::end(kBuiltIn), given.string_key) != std::end(kBuiltIn)) continue;
    const Field* field = fields.find(given.string_key);
    if (!field) fail_unknown(tool, fields, given.string_key);
    field->given = true;
    if (field->info.positional || field->kind == Field::Kind::list) {
      auto& words = lists[field];
      words.insert(words.end(), given.value.begin(), given.value.end());
    } else {
      field->set_text(given.value);
    }
  }
  for (const auto& [field, words] : lists) field->set_text(words);
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlank) + 1 - first));
}

/// A value as it stands in a configuration file: in double quotes where it would not be read back as it is.
std::string quoted(const std::string& value) {
  const bool plain = value == trimmed(value) && !value.starts_with('"') && !value.starts_with('#') &&
                     value.find(" #") == std::string::npos && value.find("\t#") == std::string::npos &&
                     value.find('\n') == std::string::npos;
  if (plain) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    c == '\n' ? out += "\\n" : out += c;
  }
  return out + '"';
}

/// The reverse; a comment starts at a # behind white space.
std::string unquoted(std::string_view text) {
  std::string value = trimmed(text);
  if (!value.starts_with('"')) {
    for (std::size_t at = 0; at < value.size(); ++at)
      if (value[at] == '#' && (at == 0 || value[at - 1] == ' ' || value[at - 1] == '\t'))
        return trimmed(std::string_view(value).substr(0, at));
    return value;
  }
  std::string out;
  std::size_t at = 1;
  for (; at < value.size() && value[at] != '"'; ++at) {
    if (value[at] != '\\' || at + 1 == value.size()) {
      out += value[at];
    } else {
      ++at;
      out += value[at] == 'n' ? '\n' : value[at];
    }
  }
  if (at >= value.size()) throw UsageError("the quote \" is not closed");
  const std::string rest = trimmed(std::string_view(value).substr(at + 1));
  if (!rest.empty() && !rest.starts_with('#'))
    throw UsageError("there is text behind the closing quote: '" + rest + "'");
  return out;
}

/// Lines of `name = value`; lists take a line an item. Returns whether the file begins with a byte-order mark.
bool read_config_file(const ToolInfo& tool, const FieldList& fields, const std::string& path) {
  std::ifstream in(path);
  if (!in) throw Error(Position{path}, "cannot open the configuration file: " + errno_text());
  Position where{path};
  bool marked = false;
  std::map<const Field*, std::vector<std::string>> values;
  try {
    for (std::string line; std::getline(in, line);) {
      if (++where.line == 1) marked = take_byte_order_mark(line, where);
      const std::string text = trimmed(line);
      if (text.empty() || text[0] == '#' || text[0] == ';') continue;
      const auto equals = text.find('=');
      if (equals == std::string::npos) throw UsageError("'" + text.substr(0, 60) + "': a line is 'name = value'");
      const std::string name = trimmed(std::string_view(text).substr(0, equals));
      const Field* field = fields.find(name);
      if (!field) fail_unknown(tool, fields, name);
      auto& list = values[field];
      if (field->kind != Field::Kind::list) list.clear();
      list.push_back(unquoted(std::string_view(text).substr(equals + 1)));
      const std::vector<std::string> before = field->get_text();
      field->set_text(list);
      if (field->get_text() != before) field->given = true;  // --dump-config writes defaults too
    }
  } catch (const UsageError& error) {
    throw UsageError(where.text() + ": " + error.what());
  }
  return marked;
}

std::string dump_config(const FieldList& fields) {
  std::string out;
  std::string_view section;
  for (const Field& field : fields.all()) {
    if (field.section != section) out += (out.empty() ? "# " : "\n# ") + std::string(field.section) + "\n";
    section = field.section;
    for (const auto& value : field.get_text()) out += std::string(field.info.name) + " = " + quoted(value) + "\n";
  }
  return out;
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
  return po::command_line_parser(words)
      .options(all)
      .positional(positional)
      .style(style::unix_style & ~style::allow_guessing)
      .run();
}

}  // namespace

bool parse_command_line(const ToolInfo& tool, const FieldList& fields, std::vector<std::string> arguments,
                        std::ostream& out) {
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
    const bool marked = !built_in.config.empty() && read_config_file(tool, fields, built_in.config);
    apply(tool, fields, parsed);
    const Field* quiet = fields.find("quiet");
    if (marked && !(quiet && quiet->get_text() == std::vector<std::string>{"true"}))
      std::cerr << tool.name << ": " << byte_order_mark_note(built_in.config) << '\n';
  } catch (const po::too_many_positional_options_error&) {
    throw UsageError("does not take file names outside of options (" + std::string(tool.name) +
                     " --help shows how to call it)");
  } catch (const po::unknown_option& error) {
    std::string name = error.get_option_name();
    name.erase(0, name.find_first_not_of('-'));
    if (name.size() == 1) throw UsageError("unknown option -" + name + " (--help lists them)");
    fail_unknown(tool, fields, name);
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
  if (!field.info.alias.empty()) note("also -" + std::string(field.info.alias));
  if (std::isfinite(field.info.min) || std::isfinite(field.info.max)) {
    const auto bound = [](double x) { return std::isfinite(x) ? fields_detail::show_real(x) : std::string(); };
    note(bound(field.info.min) + ".." + bound(field.info.max));
  }
  std::string fallback;
  for (const auto& text : field.get_text()) fallback += (fallback.empty() ? "" : " ") + text;
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
  out += "      --dump-config               show all options with their values in that form\n";
  if (!tool.examples.empty()) out += "\nExamples:\n";
  for (const auto example : tool.examples) out += "  " + std::string(example) + "\n";
  return out;
}

}  // namespace heed
