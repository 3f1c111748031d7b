#include "heed/run/kernel_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "heed/base/error.h"
#include "heed/base/random.h"
#include "heed/base/terminal.h"
#include "heed/nn/kernel_pooling.h"

namespace heed {
namespace {

constexpr const char* kPairForm = "(a line is: x TAB y)";
// A longer text is cut in a message.
constexpr int kLongestShown = 40;
// The smallest size of a number that is not 0. Smaller ones have fewer digits, or are read as 0.
constexpr double kSmallest = 1e-307;

std::string quoted(std::string_view text) {
  return "'" + fit_width(visible_text(text), kLongestShown) + "'";
}

/// Returns advice for a text that is no number.
std::string advice(std::string_view text, bool first_line) {
  if (text.find(',') != std::string_view::npos) return "the decimal sign is a point";
  if (first_line) return "if line 1 is a header, tail -n +2 removes it";
  return "a number is written like 2, -1.5 or 3e-4";
}

/// Returns the number that the text holds. Spaces around the number are allowed.
double parse_number(std::string_view text, const Position& where) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) throw Error(where, "no number here (a number is written like 2, -1.5 or 3e-4)");
  std::string_view digits = text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  const std::string_view shown = digits;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument)
    throw Error(where, quoted(shown) + " is not a number (" + advice(shown, where.line == 1) + ")");
  if (error == std::errc() && !std::isfinite(value))
    throw Error(where, quoted(shown) + " is not a finite number (leave the line out)");
  const double size = std::abs(value);
  if (error != std::errc() || size > kLargestKey || (size > 0 && size < kSmallest))
    throw Error(where, quoted(shown) + " is out of range (the largest size is 1e150, the smallest above 0 is 1e-307)");
  return value;
}

}  // namespace

NumberPairs read_pairs(LineReader& reader) {
  NumberPairs pairs;
  for (std::string line; reader.next(line);) {
    const std::size_t tab = line.find('\t');
    if (line.empty()) throw Error(reader.position(), std::string("this line is empty ") + kPairForm);
    if (tab == std::string::npos) {
      const char separator = line.find(';') != std::string::npos   ? ';'
                             : line.find(',') != std::string::npos ? ','
                                                                   : ' ';
      const bool separated = line.find(separator) != std::string::npos;
      throw Error(reader.position(),
                  "no TAB in this line (a line is: x TAB y" +
                      (separated ? std::string("; tr '") + separator + "' '\\t' writes TABs)" : ")"));
    }
    const std::size_t second = line.find('\t', tab + 1);
    if (second != std::string::npos)
      throw Error(reader.position(static_cast<std::int64_t>(second) + 1),
                  "more than two columns (a line is: x TAB y; cut -f1,2 picks two)");
    const std::string_view text = line;
    pairs.x.push_back(parse_number(text.substr(0, tab), reader.position(1)));
    pairs.y.push_back(parse_number(text.substr(tab + 1), reader.position(static_cast<std::int64_t>(tab) + 2)));
  }
  if (pairs.x.empty()) throw Error(Position{reader.name()}, std::string("has no pairs ") + kPairForm);
  return pairs;
}

std::optional<double> read_number(LineReader& reader) {
  std::string line;
  if (!reader.next(line)) return std::nullopt;
  if (const std::size_t tab = line.find('\t'); tab != std::string::npos)
    throw Error(reader.position(static_cast<std::int64_t>(tab) + 1),
                "more than one column (a line is one number; cut -f1 picks one)");
  return parse_number(line, reader.position(1));
}

double example_function(double x) {
  return 2 * std::sin(x) + std::pow(x, 0.8);
}

NumberPairs make_example_pairs(std::size_t count, double noise, std::uint64_t seed) {
  const RandomStream places(seed, RandomUse::examples, 0, 0), errors(seed, RandomUse::examples, 0, 1);
  NumberPairs pairs;
  for (std::size_t i = 0; i < count; ++i) pairs.x.push_back(kExampleEnd * places.uniform(i));
  std::sort(pairs.x.begin(), pairs.x.end());
  for (std::size_t i = 0; i < count; ++i) pairs.y.push_back(example_function(pairs.x[i]) + noise * errors.normal(i));
  return pairs;
}

}  // namespace heed
