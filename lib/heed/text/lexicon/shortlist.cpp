#include "heed/text/lexicon/shortlist.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>
#include <utility>

#include "heed/base/line_io.h"
#include "heed/base/number_text.h"

namespace heed {
namespace {

constexpr std::string_view kShortlistFirstLine = "heed-shortlist 1";
constexpr std::string_view kShortlistAdvice = " (build-vocab --shortlist makes one)";

// The largest count of a target piece that a line of a shortlist file may state.
constexpr double kMostCount = 1e18;

/// Returns the ids of all different pieces of `text`, the most frequent piece first; pieces that are equally frequent
/// are sorted by their bytes.
std::vector<std::int32_t> by_count(const PieceText& text) {
  std::vector<std::int32_t> order(text.counts().size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const std::int64_t x = text.counts()[static_cast<std::size_t>(a)], y = text.counts()[static_cast<std::size_t>(b)];
    return x != y ? x > y : text.pieces()[a] < text.pieces()[b];
  });
  return order;
}

/// Splits a line of a shortlist file into its three columns: source piece, target piece, probability. Throws Error if
/// the line does not have three columns, or if the third column is not a probability. If the source piece is empty, the
/// third column must be a count instead.
struct Columns {
  std::string_view source, target, number;

  Columns(std::string_view line, const Position& where) {
    const std::size_t first = line.find(' '), second = line.find(' ', first == line.npos ? first : first + 1);
    if (second == line.npos || second == first + 1 || line.find(' ', second + 1) != line.npos)
      throw Error(where, "is not 'source target probability' nor ' target count'" + std::string(kShortlistAdvice));
    source = line.substr(0, first);
    target = line.substr(first + 1, second - first - 1);
    number = line.substr(second + 1);
    double value = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || !(value >= 0) ||
        !(value <= (source.empty() ? kMostCount : 1)))
      throw Error(where, "'" + std::string(number.substr(0, 60)) + "' is no " +
                             (source.empty() ? "count" : "probability") + std::string(kShortlistAdvice));
  }
};

}  // namespace

void write_shortlist(std::ostream& out, const PieceText& source, const PieceText& target, const LexicalTable& table,
                     const ShortlistLimits& limits) {
  out << kShortlistFirstLine << '\n';
  const std::vector<std::int32_t> frequent = by_count(target);
  for (std::size_t i = 0; i < frequent.size() && std::cmp_less(i, limits.frequent); ++i)
    out << ' ' << target.pieces()[frequent[i]] << ' ' << target.counts()[static_cast<std::size_t>(frequent[i])] << '\n';
  std::vector<std::int32_t> rank(frequent.size());
  for (std::size_t i = 0; i < frequent.size(); ++i)
    rank[static_cast<std::size_t>(frequent[i])] = static_cast<std::int32_t>(i);
  std::vector<std::size_t> order;
  for (const std::int32_t piece : by_count(source)) {
    const LexicalTable::Row row = table.row(piece);
    order.resize(row.targets.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t kept = std::min(order.size(), static_cast<std::size_t>(limits.best));
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                      [&](std::size_t a, std::size_t b) {
                        const float x = row.probabilities[a], y = row.probabilities[b];
                        return x != y ? x > y
                                      : rank[static_cast<std::size_t>(row.targets[a])] <
                                            rank[static_cast<std::size_t>(row.targets[b])];
                      });
    for (std::size_t i = 0; i < kept; ++i)
      out << source.pieces()[piece] << ' ' << target.pieces()[row.targets[order[i]]] << ' '
          << number_text("%.5g", static_cast<double>(row.probabilities[order[i]])) << '\n';
  }
}

Shortlist Shortlist::read(const std::string& path, const Vocabulary& source, const Vocabulary& target) {
  Shortlist list;
  list.target_size_ = target.size();
  for (std::int32_t id = 0; id < kReservedIds; ++id) list.always_.push_back(id);
  LineReader reader(path, InvalidUtf8::keep);
  std::string line;
  if (!reader.next(line)) throw Error(Position{reader.name()}, "is empty" + std::string(kShortlistAdvice));
  if (line != kShortlistFirstLine)
    throw Error(reader.position(), line.starts_with("heed-shortlist ")
                                       ? "is a shortlist of version '" + line.substr(15, 20) + "'; this heed reads 1"
                                       : "is no shortlist: it does not start with '" +
                                             std::string(kShortlistFirstLine) + "'" + std::string(kShortlistAdvice));
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  while (reader.next(line)) {
    const Columns columns(line, reader.position());
    ++list.lines_;
    const std::int32_t from = columns.source.empty() ? kNoId : source.id(columns.source);
    const std::int32_t to = target.id(columns.target);
    if (from == kUnknownId || to == kUnknownId) {
      if (list.foreign_++ == 0) list.first_foreign_ = reader.position();
    } else if (from == kNoId) {
      list.always_.push_back(to);
    } else {
      pairs.emplace_back(from, to);
    }
  }
  if (pairs.empty())
    throw Error(Position{reader.name()},
                "holds no pair of pieces that the model knows, source first (learn it with build-vocab --shortlist "
                "from text that tokenize -m has cut for this model)");
  for (std::int32_t id = kReservedIds; id < source.size(); ++id)
    if (const std::int32_t same = target.id(source.piece(id)); same != kUnknownId) pairs.emplace_back(id, same);
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  list.begins_.assign(static_cast<std::size_t>(source.size()) + 1, 0);
  for (const auto& [from, to] : pairs) {
    ++list.begins_[static_cast<std::size_t>(from) + 1];
    list.targets_.push_back(to);
  }
  std::partial_sum(list.begins_.begin(), list.begins_.end(), list.begins_.begin());
  return list;
}

void Shortlist::targets_of(std::span<const std::int32_t> source, std::vector<std::int32_t>& out) const {
  std::vector<std::uint64_t> chosen((static_cast<std::size_t>(target_size_) + 63) / 64);
  const auto choose = [&](std::int32_t id) {
    chosen[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(id) % 64);
  };
  for (const std::int32_t id : always_) choose(id);
  for (const std::int32_t piece : source) {
    const auto at = static_cast<std::size_t>(piece);
    for (std::int64_t i = begins_[at]; i < begins_[at + 1]; ++i) choose(targets_[static_cast<std::size_t>(i)]);
  }
  out.clear();
  for (std::size_t word = 0; word < chosen.size(); ++word)
    for (std::uint64_t bits = chosen[word]; bits != 0; bits &= bits - 1)
      out.push_back(static_cast<std::int32_t>(word * 64) + std::countr_zero(bits));
}

}  // namespace heed
