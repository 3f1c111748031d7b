#include "heed/text/token_offsets.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <iterator>

#include "heed/base/utf8.h"
#include "heed/text/moses/moses_rules.h"
#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

// When Alignment::edit() has found a run of this many equal characters in the raw line and the token line, it takes the
// two lines to be aligned again, and stops searching for edits.
constexpr std::ptrdiff_t kAnchor = 8;
// The most edits (inserted and dropped characters) that Alignment::edit() tries. After this many edits without a run of
// kAnchor equal characters, the function takes the path that has passed the most characters of both lines.
constexpr std::ptrdiff_t kMostEdits = 96;

/// A character of a line that is to be aligned with another line: `folded` is the form in which characters are compared
/// (see fold()), `bytes` is the character's place in the line. A Moses entity such as &quot; may be one Unit.
struct Unit {
  char32_t folded;
  ByteSpan bytes;
};

/// Returns the character as which `c` is compared with other characters: the lower-case form of a letter, the
/// half-width form of a full-width character, the plain form of a quotation mark, and the ASCII hyphen for a dash.
char32_t fold(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (c >= 0xFF01 && c <= 0xFF5E) return fold(c - 0xFEE0);
  switch (c) {
    case 0x2018:
    case 0x2019:
    case 0x201A:
    case 0x201B:
    case 0x00B4:
    case 0x2039:
    case 0x203A:
      return '\'';
    case 0x201C:
    case 0x201D:
    case 0x201E:
    case 0x201F:
    case 0x00AB:
    case 0x00BB:
      return '"';
    case 0x2010:
    case 0x2011:
    case 0x2012:
    case 0x2013:
    case 0x2014:
    case 0x2015:
    case 0x2212:
      return '-';
    default:
      return static_cast<char32_t>(u_foldCase(static_cast<UChar32>(c), U_FOLD_CASE_DEFAULT));
  }
}

/// Returns all characters of `text` in the span `span` except spaces (U+0020). If `escaped` is true, a Moses entity
/// such as &quot; counts as one character.
std::vector<Unit> units_of(std::string_view text, ByteSpan span, bool escaped) {
  text = text.substr(0, span.end);
  std::vector<Unit> units;
  units.reserve(span.end - span.begin);
  for (std::size_t at = span.begin; at < text.size();) {
    const std::size_t start = at;
    if (escaped && text[at] == '&') {
      if (const char plain = entity_at(text, at)) {
        units.push_back({fold(static_cast<unsigned char>(plain)), {start, at}});
        continue;
      }
    }
    const char32_t c = decode_utf8(text, at);
    if (c != ' ') units.push_back({fold(c), {start, at}});
  }
  return units;
}

bool is_white_space(const Unit& unit) {
  return is_in(unit.folded, char_class::space);
}

/// Pairs equal characters of two texts `a` and `b`. The pairs are in order: if (i, j) and (k, l) are pairs and i < k,
/// then j < l.
///
/// The search follows the edit graph of Myers (1986). A point (i, j) of the graph says that the first i characters of
/// `a` and the first j characters of `b` are done. From a point, a diagonal step pairs two equal characters and costs
/// nothing; a step of one row drops a character of `a`, a step of one column inserts a character of `b`, and either
/// step is one edit. Diagonal k holds the points where i - j is k. For each number of edits d, the search stores the
/// farthest row that d edits can reach on each diagonal. Example: a is "xyz" and b is "yz": one edit drops x and leads
/// to diagonal 1, on which y and z are paired.
class Alignment {
 public:
  Alignment(const std::vector<Unit>& a, const std::vector<Unit>& b)
      : a_(a), b_(b), rows_(static_cast<std::ptrdiff_t>(a.size())), columns_(static_cast<std::ptrdiff_t>(b.size())) {
    while (i_ < rows_ && j_ < columns_) {
      if (equal(i_, j_)) {
        take(i_++, j_++);
      } else {
        edit();
      }
    }
  }

  /// Returns, for each character of the text `b`, the index of the equal character of the text `a` with which it is
  /// paired, or -1 for a character of `b` that is in no pair.
  std::vector<std::ptrdiff_t> partners() const {
    std::vector<std::ptrdiff_t> out(b_.size(), -1);
    for (const auto& [i, j] : pairs_) out[static_cast<std::size_t>(j)] = i;
    return out;
  }

 private:
  /// Returns whether character `i` of the text `a` equals character `j` of the text `b` after fold(), which ignores
  /// case and the shapes of quotes and dashes.
  bool equal(std::ptrdiff_t i, std::ptrdiff_t j) const {
    return a_[static_cast<std::size_t>(i)].folded == b_[static_cast<std::size_t>(j)].folded;
  }
  void take(std::ptrdiff_t i, std::ptrdiff_t j) { pairs_.emplace_back(i, j); }

  /// Called when character i_ of the text `a` differs from character j_ of the text `b`. Finds the fewest edits
  /// (dropped and inserted characters) that lead to the next run of kAnchor equal characters, or to the end of both
  /// texts. Moves i_ and j_ behind that run.
  void edit() {
    // reach[d][k + d] is the farthest row that d edits can reach on diagonal k (the points where row - column = k), or
    // -1. A row counts characters of the text `a`, and a column counts characters of the text `b`, from i_ and j_ on.
    std::vector<std::vector<std::ptrdiff_t>> reach(1, std::vector<std::ptrdiff_t>(1, 0));
    const std::ptrdiff_t rows = rows_ - i_, columns = columns_ - j_;
    std::ptrdiff_t best = 0, best_sum = -1;
    bool done = false;
    while (!done) {
      const auto d = static_cast<std::ptrdiff_t>(reach.size());
      std::vector<std::ptrdiff_t> next(static_cast<std::size_t>(2 * d + 1), -1);
      best_sum = -1;
      for (std::ptrdiff_t k = -d; k <= d && !done; k += 2) {
        std::ptrdiff_t row = start_of(reach.back(), d, k);
        if (row < 0 || row > rows || row - k > columns || row < k) continue;
        const std::ptrdiff_t first = row;
        while (row < rows && row - k < columns && equal(i_ + row, j_ + row - k)) ++row;
        next[static_cast<std::size_t>(k + d)] = row;
        if (2 * row - k > best_sum) best_sum = 2 * row - k, best = k;
        done = row - first >= kAnchor || (row == rows && row - k == columns);
        if (done) best = k;
      }
      reach.push_back(std::move(next));
      done = done || d == kMostEdits || best_sum < 0;
    }
    follow(reach, best);
  }

  /// Returns the row at which a path with `d` edits enters diagonal `k` (the points where row - column = k). The path
  /// comes either from the end of diagonal k - 1 and drops a character of the text `a`, which leads one row farther, or
  /// from the end of diagonal k + 1 and inserts a character of the text `b`, which leaves the row as it is; the
  /// function takes the farther row. `before` holds the row at the end of every diagonal after d - 1 edits. Returns a
  /// negative number if neither diagonal was reached.
  static std::ptrdiff_t start_of(const std::vector<std::ptrdiff_t>& before, std::ptrdiff_t d, std::ptrdiff_t k) {
    const auto at = [&](std::ptrdiff_t other) {
      return other < -(d - 1) || other > d - 1 ? -1 : before[static_cast<std::size_t>(other + d - 1)];
    };
    const std::ptrdiff_t deleted = at(k - 1), inserted = at(k + 1);
    return std::max(deleted < 0 ? -1 : deleted + 1, inserted);
  }

  /// Records the pairs of equal characters on the path of edits that ends on diagonal `k`, and then moves i_ and j_ to
  /// the end of that path. The path is followed backwards, by the rows in `reach` (see edit()).
  void follow(const std::vector<std::vector<std::ptrdiff_t>>& reach, std::ptrdiff_t k) {
    const std::size_t first = pairs_.size();
    const auto last = static_cast<std::ptrdiff_t>(reach.size()) - 1;
    const std::ptrdiff_t end = reach.back()[static_cast<std::size_t>(k + last)];
    std::ptrdiff_t row = end;
    for (std::ptrdiff_t d = last, here = k; d > 0; --d) {
      const auto& before = reach[static_cast<std::size_t>(d - 1)];
      const std::ptrdiff_t start = start_of(before, d, here);
      while (row > start) --row, take(i_ + row, j_ + row - here);
      const bool inserted = here + 1 <= d - 1 && before[static_cast<std::size_t>(here + d)] == start;
      here += inserted ? 1 : -1;
      row = inserted ? start : start - 1;
    }
    std::reverse(pairs_.begin() + static_cast<std::ptrdiff_t>(first), pairs_.end());
    j_ += end - k;
    i_ += end;
  }

  const std::vector<Unit>& a_;
  const std::vector<Unit>& b_;
  std::ptrdiff_t rows_, columns_, i_ = 0, j_ = 0;
  std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> pairs_;
};

}  // namespace

TokenOffsets::TokenOffsets(std::string_view raw, std::string_view tokens, bool escaped,
                           std::span<const ByteSpan> places)
    : raw_size_(raw.size()) {
  std::vector<ByteSpan> words;
  if (!places.empty())
    for (std::size_t at = after_spaces(tokens, 0); at < tokens.size(); at = after_spaces(tokens, words.back().end))
      words.push_back({at, next_space(tokens, at)});
  const bool each_word = !places.empty() && words.size() == places.size();
  if (!each_word) align(raw, {0, raw.size()}, tokens, {0, tokens.size()}, escaped);
  for (std::size_t i = 0; each_word && i < words.size(); ++i) align(raw, places[i], tokens, words[i], escaped);
}

void TokenOffsets::align(std::string_view raw, ByteSpan place, std::string_view tokens, ByteSpan token, bool escaped) {
  std::vector<Unit> from = units_of(raw, place, false);
  const std::vector<Unit> to = units_of(tokens, token, escaped);
  // If white space only separates the tokens, no white space is aligned. If it is also part of tokens, such as a
  // no-break space, all white space of the raw line except spaces takes part.
  const bool in_tokens = std::any_of(to.begin(), to.end(), is_white_space);
  if (!in_tokens) std::erase_if(from, is_white_space);
  const std::vector<std::ptrdiff_t> partners = Alignment(from, to).partners();
  origins_.reserve(origins_.size() + to.size());
  const auto bytes = [&](std::ptrdiff_t i) { return from[static_cast<std::size_t>(i)].bytes; };
  // The index of the last character of the raw line that is paired with a token character; -1 before the first pair.
  std::ptrdiff_t before = -1;
  for (std::size_t j = 0; j < to.size();) {
    if (partners[j] >= 0) {
      before = partners[j];
      origins_.push_back({to[j].bytes, bytes(before)});
      ++j;
      continue;
    }
    std::size_t end = j;
    while (end < to.size() && partners[end] < 0) ++end;
    const std::ptrdiff_t after = end < to.size() ? partners[end] : static_cast<std::ptrdiff_t>(from.size());
    const std::size_t inserted = before >= 0 ? bytes(before).end : place.begin;
    // White space at the ends of the replaced text only separates it from other text.
    std::ptrdiff_t first = before + 1, last = after - 1;
    const auto is_separator = [&](std::ptrdiff_t i) { return is_white_space(from[static_cast<std::size_t>(i)]); };
    while (first <= last && !is_white_space(to[j]) && is_separator(first)) ++first;
    while (first <= last && !is_white_space(to[j]) && is_separator(last)) --last;
    const ByteSpan replaced =
        first <= last ? ByteSpan{bytes(first).begin, bytes(last).end} : ByteSpan{inserted, inserted};
    for (; j < end; ++j) origins_.push_back({to[j].bytes, replaced});
  }
}

ByteSpan TokenOffsets::source(ByteSpan tokens) const {
  auto origin = std::partition_point(origins_.begin(), origins_.end(),
                                     [&](const Origin& o) { return o.token.end <= tokens.begin; });
  ByteSpan out;
  bool any = false;
  for (auto here = origin; here != origins_.end() && here->token.begin < tokens.end; ++here) {
    if (here->raw.begin == here->raw.end) continue;
    if (!any) out = here->raw;
    any = true;
    out = {std::min(out.begin, here->raw.begin), std::max(out.end, here->raw.end)};
  }
  if (any) return out;
  const bool only_space = tokens.begin < tokens.end && (origin == origins_.end() || origin->token.begin >= tokens.end);
  if (only_space) {
    const std::size_t begin = origin == origins_.begin() ? 0 : std::prev(origin)->raw.end;
    const std::size_t end = origin == origins_.end() ? raw_size_ : origin->raw.begin;
    if (begin < end) return {begin, end};
  }
  if (origin != origins_.end()) return {origin->raw.begin, origin->raw.begin};
  const std::size_t last = origins_.empty() ? 0 : origins_.back().raw.end;
  return {last, last};
}

}  // namespace heed
