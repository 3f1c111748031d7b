#include "heed/config/unknown_option.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace heed {
namespace {

constexpr std::array<std::string_view, 4> kBuiltIn{"help", "version", "config", "dump-config"};
// An error message for an unknown option suggests at most this many similar options; if more are similar, it suggests
// none.
constexpr std::size_t kMostSuggestions = 3;

using Names = std::vector<std::string_view>;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, above + 1, diagonal + (a[i] != b[j])});
      diagonal = above;
    }
  }
  return row.back();
}

/// Returns the words between the dashes of an option's name: "source" and "vocab" for "source-vocab".
Names parts_of(std::string_view name) {
  Names parts;
  for (std::size_t begin = 0, end = 0; begin <= name.size(); begin = end + 1) {
    end = std::min(name.find('-', begin), name.size());
    if (end > begin) parts.push_back(name.substr(begin, end - begin));
  }
  return parts;
}

/// Returns whether each word of `some` is a word of `all`, or has at least three letters and is the beginning of a word
/// of `all`.
bool has_parts(const Names& all, const Names& some) {
  return std::all_of(some.begin(), some.end(), [&](std::string_view part) {
    return std::any_of(all.begin(), all.end(), [&](std::string_view other) {
      return other == part || (part.size() >= 3 && other.starts_with(part));
    });
  });
}

template <class Condition>
Names select(const Names& names, const Condition& condition) {
  Names out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out), condition);
  return out;
}

/// Returns the options in `names` that are similar to the unknown option `name`. Four kinds of similarity are tried in
/// order, and the first kind that finds any option decides: options that begin with `name`; options that contain all
/// words of `name`; options of several words that are all in `name`; and the option with the smallest edit distance.
Names similar(std::string_view name, const Names& names) {
  Names found = select(names, [&](std::string_view other) { return other.starts_with(name); });
  if (!found.empty()) return found;
  const Names parts = parts_of(name);
  found = select(names, [&](std::string_view other) { return has_parts(parts_of(other), parts); });
  if (!found.empty()) return found;
  found = select(names, [&](std::string_view other) {
    const Names needed = parts_of(other);
    return needed.size() > 1 && has_parts(parts, needed);
  });
  if (!found.empty()) return found;
  std::size_t best = name.size() <= 3 ? 1 : std::max<std::size_t>(2, name.size() / 3);
  for (const std::string_view other : names) {
    const std::size_t distance = edit_distance(name, other);
    if (distance > best || (distance == best && !found.empty())) continue;
    found = {other};
    best = distance;
  }
  return found;
}

std::string question(const Names& names, std::string_view before) {
  std::string out = ": did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i)
    out += std::string(i == 0                 ? ""
                       : i + 1 < names.size() ? ", "
                                              : " or ") +
           std::string(before) + std::string(names[i]);
  return out + "?";
}

/// Returns the present spelling of an option, "--name", "--no-name" or "-n", if `option`, as the user has typed it, is
/// in `fields`; otherwise an empty string.
std::string spelling(const ToolInfo& tool, const FieldList& fields, std::string_view option) {
  const std::string_view name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  if (name.empty()) return {};
  if (const Field* field = fields.find(name)) return "--" + std::string(field->info.name);
  if (option.starts_with("--")) {
    const Field* flag = name.starts_with("no-") ? fields.find(name.substr(3)) : nullptr;
    return flag && flag->kind == Field::Kind::flag ? "--no-" + std::string(flag->info.name) : std::string();
  }
  // A longer word with one dash is a letter with its value, such as -r3, or an option of another toolkit.
  if (!fields.find_letter(name[0]) || (name.size() > 1 && find_peer_option(tool, name))) return {};
  return {'-', name[0]};
}

/// Throws a UsageError if `option` is in the list only under other values of the selecting field; the message names
/// these values. In any case the selecting field then has its old value again. `fields` is a copy, because listing the
/// fields anew makes pointers into a list invalid.
void check_other_selections(const ToolInfo& tool, FieldList fields, const std::string& option) {
  if (!fields.selector() || !spelling(tool, fields, option).empty()) return;
  const std::string present = fields.selector()->get_text().at(0), selector(fields.selector()->info.name);
  const Names choices = fields.selector()->choices;
  std::string typed;
  Names found;
  for (const std::string_view choice : choices) {
    fields.select(std::string(choice));
    const std::string here = spelling(tool, fields, option);
    if (here.empty()) continue;
    typed = here;
    found.push_back(choice);
  }
  fields.select(present);
  if (found.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < found.size(); ++i)
    list += std::string(i == 0 ? "" : i + 1 < found.size() ? ", " : " and ") + std::string(found[i]);
  throw UsageError(typed + ": is an option of --" + selector + " " + list + ", not of " + present + " (" +
                   std::string(tool.name) + " --" + selector + " " + std::string(found[0]) +
                   " --help lists its options)");
}

}  // namespace

bool is_built_in(std::string_view name) {
  return std::find(kBuiltIn.begin(), kBuiltIn.end(), name) != kBuiltIn.end();
}

const PeerOption* find_peer_option(const ToolInfo& tool, std::string_view name) {
  const auto found =
      std::find_if(tool.peers.begin(), tool.peers.end(), [&](const PeerOption& peer) { return peer.name == name; });
  return found == tool.peers.end() ? nullptr : &*found;
}

void fail_unknown_option(const ToolInfo& tool, const FieldList& fields, const std::string& option) {
  check_other_selections(tool, fields, option);
  const std::string message = "unknown option " + option;
  const std::string_view name = std::string_view(option).substr(std::min(option.find_first_not_of('-'), option.size()));
  if (const PeerOption* peer = find_peer_option(tool, name)) {
    const std::string toolkit(peer->toolkit);
    if (peer->ours.empty())
      throw UsageError(message + ": heed has no such option (" + toolkit + "): " + std::string(peer->reason));
    throw UsageError(message + ": did you mean --" + std::string(peer->ours) + "? (" + toolkit + ")");
  }
  if (name.size() == 1) throw UsageError(message + " (--help lists them)");
  Names names(kBuiltIn.begin(), kBuiltIn.end()), flags;
  for (const Field& field : fields.all()) {
    if (field.info.positional) continue;
    names.push_back(field.info.name);
    if (field.kind == Field::Kind::flag) flags.push_back(field.info.name);
  }
  if (const Field* field = fields.find(name)) throw UsageError(message + question({field->info.name}, "--"));
  const auto ask = [&](const Names& found, std::string_view before) {
    if (!found.empty() && found.size() <= kMostSuggestions) throw UsageError(message + question(found, before));
  };
  if (name.starts_with("no-")) {
    ask(select(names, [&](std::string_view other) { return other.starts_with(name); }), "--");
    ask(similar(name.substr(3), flags), "--no-");
  }
  ask(similar(name, names), "--");
  throw UsageError(message + " (--help lists them)");
}

}  // namespace heed
