#include "heed/config/config_file.h"

#include <algorithm>
#include <map>

#include "heed/base/line_io.h"
#include "heed/base/streams.h"
#include "heed/config/unknown_option.h"

namespace heed {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlank) + 1 - first));
}

/// Returns whether the option `field` takes all words that follow it on the command line. In a configuration file, the
/// value of such an option is a list of words.
bool takes_words(const Field& field) {
  return field.kind == Field::Kind::list && !field.info.repeated;
}

/// Returns an option's value as it is written in a configuration file: in double quotes when ConfigFile would read
/// it differently without them. `word` says that the value is one word of a list.
std::string quoted(const std::string& value, bool word) {
  const bool plain = value == trimmed(value) && !value.starts_with('"') && !value.starts_with('#') &&
                     value.find(" #") == std::string::npos && value.find("\t#") == std::string::npos &&
                     value.find('\n') == std::string::npos &&
                     !(word && (value.empty() || value.find_first_of(kBlank) != std::string::npos));
  if (plain) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    c == '\n' ? out += "\\n" : out += c;
  }
  return out + '"';
}

/// Reads a string in double quotes from `text`. `at` must be the index of the opening quote; take_quoted() sets `at` to
/// the index behind the closing quote.
std::string take_quoted(std::string_view text, std::size_t& at) {
  std::string out;
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      ++at;
      out += text[at] == 'n' ? '\n' : text[at];
    } else {
      out += text[at];
    }
  }
  if (at >= text.size()) throw UsageError("the quote \" is not closed");
  ++at;
  return out;
}

/// Returns the value in a line "name = value" of a configuration file. `text` is the part of the line behind `=`. A #
/// behind white space starts a comment.
std::string value_of(std::string_view text) {
  const std::string value = trimmed(text);
  if (!value.starts_with('"')) {
    for (std::size_t at = 0; at < value.size(); ++at)
      if (value[at] == '#' && (at == 0 || value[at - 1] == ' ' || value[at - 1] == '\t'))
        return trimmed(std::string_view(value).substr(0, at));
    return value;
  }
  std::size_t at = 0;
  std::string out = take_quoted(value, at);
  const std::string rest = trimmed(std::string_view(value).substr(at));
  if (!rest.empty() && !rest.starts_with('#'))
    throw UsageError("there is text behind the closing quote: '" + rest + "'");
  return out;
}

/// Returns the words in a line "name = word word ..." of a configuration file. `text` is the part of the line behind
/// `=`. A word with blanks must be in double quotes.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(kBlank, at)) != std::string_view::npos && text[at] != '#';) {
    if (text[at] != '"') {
      const std::size_t end = std::min(text.find_first_of(kBlank, at), text.size());
      words.emplace_back(text.substr(at, end - at));
      at = end;
      continue;
    }
    words.push_back(take_quoted(text, at));
    if (at < text.size() && kBlank.find(text[at]) == std::string_view::npos)
      throw UsageError("there is text behind the closing quote: '" + trimmed(text.substr(at)) + "'");
  }
  return words;
}

/// Returns the option that is called `name` in a line "name = value" of a configuration file, with `-` for `_`.
/// Throws UsageError when the option is unknown, or when only the command line may have this option, such as --help.
const Field& field_of(const ToolInfo& tool, const FieldList& fields, const std::string& name) {
  if (const Field* field = fields.find(name)) return *field;
  if (is_built_in(name)) throw UsageError("'" + name + "' is for the command line only");
  const Field* flag = name.starts_with("no-") ? fields.find(std::string_view(name).substr(3)) : nullptr;
  if (flag && flag->kind == Field::Kind::flag)
    throw UsageError("'" + name + "': write '" + std::string(flag->info.name) + " = false'");
  fail_unknown_option(tool, fields, "--" + name);
}

/// Returns whether a line of a configuration file starts a section, "[name]", with or without a comment behind it.
/// Throws UsageError if the closing bracket is missing or if other text stands behind it.
bool is_section(const std::string& line) {
  if (!line.starts_with('[')) return false;
  const std::string rest = trimmed(std::string_view(line).substr(std::min(line.find(']'), line.size() - 1) + 1));
  if (line.find(']') == std::string::npos || !(rest.empty() || rest[0] == '#' || rest[0] == ';'))
    throw UsageError("'" + line.substr(0, 60) + "': a section is '[name]'");
  return true;
}

/// Calls `act`. Puts the file's name and the line's number, which may be 0 for the whole file, before the message of a
/// UsageError.
template <class Act>
void at_line(const std::string& path, std::int64_t line, const Act& act) {
  try {
    act();
  } catch (const UsageError& error) {
    throw UsageError(Position{path, line}.text() + ": " + error.what());
  }
}

}  // namespace

ConfigFile::ConfigFile(const std::string& path) : path_(input_name(path)) {
  const std::unique_ptr<std::istream> in = open_input(path);
  std::int64_t number = 0;
  for (std::string line; std::getline(*in, line);) {
    if (++number == 1) marked_ = take_byte_order_mark(line, {path_, number});
    at_line(path_, number, [&] {
      const std::string text = trimmed(line);
      if (text.empty() || text[0] == '#' || text[0] == ';' || is_section(text)) return;
      const auto equals = text.find('=');
      if (equals == std::string::npos) throw UsageError("'" + text.substr(0, 60) + "': a line is 'name = value'");
      std::string name = trimmed(std::string_view(text).substr(0, equals));
      std::replace(name.begin(), name.end(), '_', '-');
      lines_.push_back({number, std::move(name), text.substr(equals + 1)});
    });
  }
}

void ConfigFile::select(FieldList& fields) const {
  const Field* const selector = fields.selector();
  const auto last = std::find_if(lines_.rbegin(), lines_.rend(),
                                 [&](const Line& line) { return fields.find(line.name) == selector; });
  if (selector && last != lines_.rend()) at_line(path_, last->number, [&] { fields.select(value_of(last->value)); });
}

void ConfigFile::apply(const ToolInfo& tool, const FieldList& fields) const {
  std::map<const Field*, std::vector<std::string>> values;
  for (const Line& line : lines_) {
    at_line(path_, line.number, [&] {
      const Field& field = field_of(tool, fields, line.name);
      auto& list = values[&field];
      if (field.kind != Field::Kind::list) list.clear();
      if (takes_words(field)) {
        const std::vector<std::string> words = words_of(line.value);
        list.insert(list.end(), words.begin(), words.end());
      } else {
        list.push_back(value_of(line.value));
      }
      const std::vector<std::string> before = field.get_text();
      field.set_text(list);
      // A line that gives the option its default does not count as given by the user: --dump-config writes the options
      // that have their default values too.
      if (field.get_text() != field.initial) field.given = true;
      if (field.info.selects) field.set_text(before);
    });
  }
  std::vector<const Field*> set;
  for (const auto& [field, list] : values) set.push_back(field);
  at_line(path_, 0, [&] { fields.set_spelt(set); });
}

std::string dump_config(const FieldList& fields) {
  std::string out;
  std::string_view section;
  for (const Field& field : fields.all()) {
    if (field.section != section) out += (out.empty() ? "# " : "\n# ") + std::string(field.section) + "\n";
    section = field.section;
    const std::vector<std::string> values = field.get_text();
    if (field.info.preset && values == field.initial) continue;
    const std::string name(field.info.name);
    if (takes_words(field) && !values.empty()) {
      out += name + " =";
      for (const auto& value : values) out += " " + quoted(value, true);
      out += "\n";
    } else {
      for (const auto& value : values) out += name + " = " + quoted(value, false) + "\n";
    }
  }
  return out;
}

}  // namespace heed
