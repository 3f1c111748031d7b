#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "heed/config/fields.h"

namespace heed {
namespace {

std::string option(const FieldInfo& info) {
  return info.positional ? std::string(info.value) : "--" + std::string(info.name);
}

/// Removes the suffix K, M or G from the end of a number's text. Returns the factor that the suffix stands for: 10^3,
/// 10^6 or 10^9, or 1 without a suffix.
double take_suffix(std::string_view& text) {
  if (text.empty()) return 1;
  const double factor = text.back() == 'K' ? 1e3 : text.back() == 'M' ? 1e6 : text.back() == 'G' ? 1e9 : 1;
  if (factor > 1) text.remove_suffix(1);
  return factor;
}

/// Reads a number that is the whole of `text`. Returns false where it is not one, or too large for the type.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

[[noreturn]] void fail_range(const FieldInfo& info, const std::string& text) {
  const bool low = std::isfinite(info.min), high = std::isfinite(info.max);
  std::string range;
  if (low && high)
    range = "between " + fields_detail::show_real(info.min) + " and " + fields_detail::show_real(info.max);
  else if (low)
    range = "at least " + fields_detail::show_real(info.min);
  else
    range = "at most " + fields_detail::show_real(info.max);
  throw UsageError(option(info) + " " + text + ": must be " + range);
}

}  // namespace

std::string text_of(const Field& field) {
  std::string out;
  for (const std::string& word : field.get_text()) out += (out.empty() ? "" : " ") + word;
  return out.empty() ? kNotSet : out;
}

namespace fields_detail {

std::int64_t parse_integer(const FieldInfo& info, const std::string& text, std::int64_t low, std::int64_t high) {
  std::string_view digits = text;
  const double factor = take_suffix(digits);
  std::int64_t value = 0;
  double real = 0;
  const bool exact = factor == 1 && read_number(digits, value);
  if (exact) {
    real = static_cast<double>(value);
  } else if (!read_number(digits, real) || std::floor(real * factor) != real * factor) {
    // A number with a fraction is allowed when the suffix makes it whole: "1.5K" is 1500.
    throw UsageError(option(info) + " '" + text + "': not a whole number (digits, with K, M or G for thousands)");
  }
  real *= factor;
  if (real < info.min || real > info.max) fail_range(info, text);
  // As a double, the largest integer of 64 bits is 2^63, which does not fit.
  const bool fits = exact ? low <= value && value <= high
                          : static_cast<double>(low) <= real && real <= static_cast<double>(high) && real < 0x1p63;
  if (!fits) throw UsageError(option(info) + " " + text + ": too large");
  return exact ? value : static_cast<std::int64_t>(real);
}

double parse_real(const FieldInfo& info, const std::string& text) {
  std::string_view digits = text;
  const double factor = take_suffix(digits);
  double value = 0;
  if (!read_number(digits, value) || !std::isfinite(value))
    throw UsageError(option(info) + " '" + text + "': not a number");
  value *= factor;
  if (!std::isfinite(value)) throw UsageError(option(info) + " " + text + ": too large");
  if (value < info.min || value > info.max) fail_range(info, text);
  return value;
}

bool parse_flag(const FieldInfo& info, const std::string& text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  throw UsageError(option(info) + " '" + text + "': must be true or false");
}

std::string show_real(double value) {
  if (std::isnan(value)) return "nan";  // to_chars() writes the sign, too, which says nothing
  char out[32];
  const bool whole = std::floor(value) == value && std::abs(value) < 1e15;
  const auto [end, error] = whole ? std::to_chars(out, out + sizeof out, static_cast<std::int64_t>(value))
                                  : std::to_chars(out, out + sizeof out, value);
  return error == std::errc() ? std::string(out, end) : std::string("nan");
}

void fail_choice(const FieldInfo& info, const std::string& text, std::span<const std::string_view> choices) {
  std::string list;
  for (const auto choice : choices) list += (list.empty() ? "" : ", ") + std::string(choice);
  throw UsageError(option(info) + " '" + text + "': must be one of " + list);
}

const std::string& single(const FieldInfo& info, std::span<const std::string> values) {
  if (values.size() != 1) throw UsageError(option(info) + ": takes one value");
  return values[0];
}

}  // namespace fields_detail

const Field* FieldList::find(std::string_view name) const {
  for (const Field& field : fields_)
    if (field.info.name == name || (!field.info.alias.empty() && field.info.alias == name)) return &field;
  return nullptr;
}

const Field* FieldList::find_letter(char letter) const {
  for (const Field& field : fields_)
    if (field.info.letter == letter) return &field;
  return nullptr;
}

const Field* FieldList::selector() const {
  for (const Field& field : fields_)
    if (field.info.selects) return &field;
  return nullptr;
}

void FieldList::set_spelt(std::span<const Field* const> set) const {
  const auto is_set = [&](const Field& field) { return std::ranges::find(set, &field) != set.end(); };
  for (const Field& flag : fields_) {
    if (flag.info.spells.empty()) continue;
    const Field& option = *find(flag.info.spells);
    const std::vector<std::string> spelt{std::string(flag.info.spelt_value)};
    const bool on = flag.get_text() == std::vector<std::string>{"true"}, agrees = option.get_text() == spelt;
    if (is_set(flag) && is_set(option)) {
      if (on && !agrees)
        throw UsageError("--" + std::string(flag.info.name) + ": contradicts --" + std::string(option.info.name) + " " +
                         text_of(option) + " (leave one of them out)");
    } else if (is_set(flag)) {
      if (on || agrees) {
        option.set_text(on ? spelt : option.initial);
        option.given = on;
      }
    } else if (is_set(option) && !agrees) {
      flag.set_text(std::vector<std::string>{"false"});
      flag.given = false;
    }
  }
}

void FieldList::relist() {
  const Field* const present = selector();
  if (!present || present->get_text() == listed_) return;
  const Field before = *present;
  // The struct compares the selecting field before and after the visit, so add() makes the change during the visit.
  selected_ = before.get_text();
  before.set_text(listed_);
  fields_.clear();
  section_ = kFirstSection;
  visit_(*this);
  selected_.clear();
  for (Field& field : fields_) {
    if (!field.info.selects) continue;
    field.initial = before.initial;
    field.given = before.given;
  }
}

void FieldList::select(const std::string& value) {
  selector()->set_text({&value, 1});
  relist();
}

void FieldList::add(Field field) {
  if (field.info.selects) {
    if (field.kind != Field::Kind::choice || field.optional || field.info.letter || !field.info.implicit.empty() ||
        selector())
      throw Error("internal: --" + std::string(field.info.name) + " cannot select other fields");
    if (!selected_.empty()) field.set_text(selected_);
    listed_ = field.get_text();
  }
  field.initial = field.get_text();
  fields_.push_back(std::move(field));
}

std::vector<std::string> FieldList::given() const {
  std::vector<std::string> names;
  for (const Field& field : fields_)
    if (field.given) names.emplace_back(field.info.name);
  return names;
}

bool is_given(const std::vector<std::string>& given, std::string_view name) {
  return std::ranges::find(given, name) != given.end();
}

}  // namespace heed
