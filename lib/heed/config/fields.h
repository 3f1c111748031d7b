#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heed/base/error.h"

namespace heed {

/// What a program does with the file that a field names, or with the files of a list: it reads the file, replaces it by
/// a new one (`written`), or adds to its end (`appended`).
enum class FileUse { none, read, written, appended };

/// The description of one field of a struct of options or configuration values. Such a struct lists its fields once, in
/// a member function
///
///     template <class Visitor> void fields(Visitor& visit) {
///       visit.section("Scoring");
///       visit(max_order, {.name = "max-order", .help = "longest n-gram", .value = "N", .min = 1, .max = 16});
///     }
///
/// and this one list serves the command line, --help, --config, --dump-config, the validation of values, the attributes
/// in HDF5 files, the test of the man pages and the shell completion.
///
/// The value of one option may decide which other options there are, and their defaults. Such an option has `selects`,
/// and the struct visits it first:
///
///     const Shape before = shape;
///     visit(shape, {.name = "shape", .help = "what to draw", .selects = true});
///     if (shape != before) config = preset(shape);  // config is a std::variant<Circle, Square>
///     std::visit([&](auto& chosen) { chosen.fields(visit); }, config);
///
/// A visitor may change the value of the selecting field while it visits the field; FieldList::relist() does.
struct FieldInfo {
  std::string_view name;         ///< name of the option without dashes, in kebab-case: "max-order"
  std::string_view help;         ///< explanation in --help: one line without a full stop
  std::string_view value = {};   ///< placeholder for the value in --help: N, FILE, P
  FileUse file = FileUse::none;  ///< what the program does with a file whose name is the value
  char letter = 0;               ///< one-letter form of the option; 0 for none
  /// The second name of the option, without dashes. An option with the alias "tok" is accepted as --tok and, as in
  /// sacreBLEU, as -tok.
  std::string_view alias = {};
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::string_view implicit = {};  ///< value of the option when the user gives the option without a value
  /// Only for lists: true if the option takes one word and may be given several times (-x A -x B); false if the option
  /// takes all words that follow it (-x A B).
  bool repeated = false;
  bool positional = false;  ///< true for the field that gets the words of the command line that belong to no option (at
                            ///< most one field)
  std::span<const std::string_view> only =
      {};  ///< names of the enum values that the option accepts; empty: all values of the enum
  /// True if other fields of the struct depend on this field's value: which fields there are, or their defaults. At
  /// most one field of a struct selects. It is an enum with a value, and its option has no one-letter form and no
  /// `implicit` value, because parse_command_line() looks for the option before it knows the other options.
  bool selects = false;
  /// Only for flags that are another spelling of an option with one of its values: the name of that option, and the
  /// value. A flag --red with .spells = "colour" and .spelt_value = "red" is the same as --colour red.
  std::string_view spells = {}, spelt_value = {};
  /// True if the value of the selecting field decides this field's default. dump_config() leaves the field out when it
  /// has its default, so that the dumped file can be used with another value of the selecting field.
  bool preset = false;
  /// Only for attributes of HDF5 files: true if files of older heeds lack the attribute; the field then has its
  /// default.
  bool later = false;
  /// Only for attributes of HDF5 files: true if the field matters in training alone, such as dropout, so that what a
  /// trained model computes does not depend on it.
  bool training_only = false;

  /// Returns whether the option accepts the enum value that has the name `choice`.
  bool takes(std::string_view choice) const {
    return only.empty() || std::find(only.begin(), only.end(), choice) != only.end();
  }
};

/// Lists the names of an enum's values, as options and HDF5 attributes spell them. Each enum has its own specialisation
/// with a member `static constexpr std::pair<E, std::string_view> values[] = {{E::a, "a"}, ...};`.
template <class Enum>
struct EnumNames;

/// Returns the name of an enum value, which EnumNames<Enum>::values lists.
template <class Enum>
constexpr std::string_view enum_name(Enum value) {
  for (const auto& [known, name] : EnumNames<Enum>::values)
    if (known == value) return name;
  throw Error("internal: an enum value without a name");
}

/// Returns the names of the given enum values, as an array for FieldInfo::only.
template <class... Enums>
constexpr std::array<std::string_view, sizeof...(Enums)> enum_names(Enums... values) {
  return {enum_name(values)...};
}

using FieldValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// One option or configuration value, that is, one field of a struct, in a form that does not depend on the field's C++
/// type: functions read and write the field's value as text.
struct Field {
  enum class Kind { flag, integer, real, text, choice, list };

  FieldInfo info;
  std::string_view section;
  Kind kind = Kind::text;
  /// True if the field's type is std::optional, so that the field may have no value; --help then shows no default.
  bool optional = false;
  /// The words that the option accepts as its value, or as each item of its list; empty if the option does not choose
  /// from given words.
  std::vector<std::string_view> choices;
  /// Sets the field's value from words of the command line or of a configuration file; throws UsageError that names the
  /// option.
  std::function<void(std::span<const std::string>)> set_text;
  /// Returns the field's value as words; empty when an optional field has no value or a list has no items.
  std::function<std::vector<std::string>()> get_text;
  std::function<FieldValue()> get;
  /// The field's default: the words of its value when it was listed. FieldList::relist() keeps the default of the
  /// selecting field.
  std::vector<std::string> initial;
  /// True when the command line sets the field, or when a configuration file sets it to a value other than its default.
  /// A flag counts as given only if its value is not the default, because --no-X takes it back.
  mutable bool given = false;
};

/// What text_of() returns for a field without a value.
inline constexpr const char* kNotSet = "not set";
/// Returns the value of a field as text, or kNotSet.
std::string text_of(const Field& field);

namespace fields_detail {

/// Returns the whole number that a user has written, such as "1000" or "1.5K". Throws UsageError when the text is no
/// whole number, or when the number is outside info.min .. info.max or outside low .. high, the range of the field's
/// C++ type.
std::int64_t parse_integer(const FieldInfo& info, const std::string& text, std::int64_t low, std::int64_t high);
/// Returns the number that a user has written, such as "0.1" or "1.5K". Throws UsageError when the text is no number or
/// when the number is outside the range info.min .. info.max.
double parse_real(const FieldInfo& info, const std::string& text);
/// Returns the value of a flag that a user has written: true, yes, on or 1; false, no, off or 0. Throws UsageError when
/// the text is none of these.
bool parse_flag(const FieldInfo& info, const std::string& text);
/// Returns a number as the shortest text from which parse_real() reads the same number; a whole number has no point.
std::string show_real(double value);
/// Throws a UsageError that says that `text` is none of the words `choices` that the option accepts.
[[noreturn]] void fail_choice(const FieldInfo& info, const std::string& text,
                              std::span<const std::string_view> choices);
/// Returns the only word in `values`, which a user gave as an option's value. Throws UsageError when there is no word
/// or more than one.
const std::string& single(const FieldInfo& info, std::span<const std::string> values);

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class T>
constexpr Field::Kind kind_of() {
  if constexpr (std::is_same_v<T, bool>)
    return Field::Kind::flag;
  else if constexpr (std::is_enum_v<T>)
    return Field::Kind::choice;
  else if constexpr (std::is_integral_v<T>)
    return Field::Kind::integer;
  else if constexpr (std::is_floating_point_v<T>)
    return Field::Kind::real;
  else
    return Field::Kind::text;
}

template <class T>
T parse_one(const FieldInfo& info, const std::string& text) {
  if constexpr (std::is_same_v<T, bool>) {
    return parse_flag(info, text);
  } else if constexpr (std::is_enum_v<T>) {
    std::vector<std::string_view> names;
    for (const auto& [known, name] : EnumNames<T>::values) {
      if (!info.takes(name)) continue;
      if (name == text) return known;
      names.push_back(name);
    }
    fail_choice(info, text, names);
  } else if constexpr (std::is_integral_v<T>) {
    constexpr auto high = std::numeric_limits<T>::max();
    return static_cast<T>(parse_integer(info, text, std::numeric_limits<T>::min(),
                                        std::cmp_less(high, INT64_MAX) ? static_cast<std::int64_t>(high) : INT64_MAX));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(parse_real(info, text));
  } else {
    return text;
  }
}

template <class T>
std::string show_one(const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_enum_v<T>)
    return std::string(enum_name(value));
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else if constexpr (std::is_floating_point_v<T>)
    return show_real(value);
  else
    return value;
}

}  // namespace fields_detail

/// The list of a struct's fields. A FieldList is passed to the struct's member function fields(), which calls the
/// FieldList for each field. The struct must outlive the list.
class FieldList {
 public:
  template <class Options>
  static FieldList of(Options& options) {
    FieldList list;
    list.visit_ = [&options](FieldList& visitor) { options.fields(visitor); };
    list.visit_(list);
    return list;
  }

  void section(std::string_view title) { section_ = title; }

  template <class T>
  void operator()(T& target, FieldInfo info) {
    using namespace fields_detail;
    Field field;
    field.info = info;
    field.section = section_;
    if constexpr (IsVector<T>::value) {
      using Item = typename T::value_type;
      field.kind = Field::Kind::list;
      add_choices<Item>(field);
      field.set_text = [&target, info](std::span<const std::string> values) {
        target.clear();
        for (const auto& value : values) target.push_back(parse_one<Item>(info, value));
      };
      field.get_text = [&target] {
        std::vector<std::string> out;
        for (const auto& item : target) out.push_back(show_one<Item>(item));
        return out;
      };
      field.get = [get = field.get_text] { return FieldValue(get()); };
    } else {
      using Item = typename Unwrap<T>::type;
      field.kind = kind_of<Item>();
      field.optional = IsOptional<T>::value;
      add_choices<Item>(field);
      field.set_text = [&target, info](std::span<const std::string> values) {
        target = parse_one<Item>(info, single(info, values));
      };
      field.get_text = [&target]() -> std::vector<std::string> {
        if constexpr (IsOptional<T>::value) {
          if (!target) return {};
          return {show_one<Item>(*target)};
        } else {
          return {show_one<Item>(target)};
        }
      };
      field.get = [&target]() -> FieldValue {
        if constexpr (IsOptional<T>::value) {
          return target ? to_value<Item>(*target) : FieldValue(std::string());
        } else {
          return to_value<Item>(target);
        }
      };
    }
    add(std::move(field));
  }

  const std::vector<Field>& all() const { return fields_; }
  /// Returns the field whose name or alias is `name`, or nullptr when no field has it.
  const Field* find(std::string_view name) const;
  /// Returns the field whose option has the one-letter form `letter` (such as -q), or nullptr when no field has it.
  const Field* find_letter(char letter) const;
  /// Returns the field on whose value other fields depend (FieldInfo::selects), or nullptr when there is none.
  const Field* selector() const;
  /// Lists the struct's fields anew if the value of the selecting field has changed since they were listed, so that the
  /// struct resets the fields that depend on it; otherwise does nothing. Every field is then as newly listed, except
  /// that the selecting field keeps `initial` and `given`: call relist() before other fields are set. Pointers to
  /// fields of the list become invalid. Another list of the same struct must not be used before it is listed anew, or
  /// before the selecting field has its old value again.
  void relist();
  /// Sets the selecting field to `value` and calls relist(). Throws UsageError, and changes nothing, when the field
  /// does not take the value.
  void select(const std::string& value);
  /// Sets the options that flags of the list spell (FieldInfo::spells). `set` are the fields that have been set by one
  /// source, a configuration file or the command line; the source takes precedence over those before it, whichever
  /// spelling each of them uses. --no-FLAG takes the spelt value back. Throws UsageError if the source sets the flag
  /// and gives the option another value.
  void set_spelt(std::span<const Field* const> set) const;
  /// Returns the names of the fields that the user has set on the command line or in a configuration file.
  std::vector<std::string> given() const;
  /// The file of --config from which fields have been set; empty without this option.
  const std::string& config_file() const { return config_file_; }
  void set_config_file(std::string path) { config_file_ = std::move(path); }

 private:
  FieldList() = default;
  /// Appends a field. While relist() runs, first gives the selecting field the value that relist() has found.
  void add(Field field);

  template <class T>
  struct Unwrap {
    using type = T;
  };
  template <class T>
  struct Unwrap<std::optional<T>> {
    using type = T;
  };

  template <class Item>
  static FieldValue to_value(const Item& item) {
    if constexpr (std::is_same_v<Item, bool>)
      return item;
    else if constexpr (std::is_enum_v<Item>)
      return std::string(enum_name(item));
    else if constexpr (std::is_integral_v<Item>)
      return static_cast<std::int64_t>(item);
    else if constexpr (std::is_floating_point_v<Item>)
      return static_cast<double>(item);
    else
      return item;
  }

  template <class Item>
  static void add_choices(Field& field) {
    if constexpr (std::is_enum_v<Item>)
      for (const auto& [value, name] : EnumNames<Item>::values)
        if (field.info.takes(name)) field.choices.push_back(name);
  }

  static constexpr std::string_view kFirstSection = "Options";

  std::string_view section_ = kFirstSection;
  std::vector<Field> fields_;
  std::string config_file_;
  std::function<void(FieldList&)> visit_;  ///< calls the struct's fields() with a list
  std::vector<std::string> listed_;        ///< the value of the selecting field when the fields were listed
  std::vector<std::string> selected_;      ///< while relist() runs, the selecting field's new value; otherwise empty
};

/// Returns whether the user has set the option `name`; `given` is what FieldList::given() has returned.
bool is_given(const std::vector<std::string>& given, std::string_view name);

}  // namespace heed
