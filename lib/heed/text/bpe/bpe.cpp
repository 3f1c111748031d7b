#include "heed/text/bpe/bpe.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstring>
#include <queue>
#include <span>

#include "heed/base/line_io.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

constexpr std::int32_t kNoNode = -1;
constexpr int kIndexBits = 6;
// merge_short() cuts words of less than 48 bytes, and merge_long() cuts longer words, for which merge_long() is faster.
constexpr std::size_t kLongWord = 48;
static_assert(kLongWord < (1 << kIndexBits));
// BPE-dropout takes time that grows with the square of a word's length. So a word of more than 1,024 characters is
// merged in parts of 1,024 characters.
constexpr std::size_t kDropoutPart = 1024;

std::size_t index(std::int32_t number) {
  return static_cast<std::size_t>(number);
}

/// Appends to `ends` the byte offsets at which the symbols of a word end. Skips a symbol that is only the mark `</w>`
/// of the word's end, because this mark has no bytes in the word.
template <class Symbols>
void append_ends(const Symbols& symbols, std::vector<std::size_t>& ends) {
  for (const auto& symbol : symbols)
    if (ends.empty() || symbol.end > ends.back()) ends.push_back(symbol.end);
}

}  // namespace

BpeEncoder::BpeEncoder(BpeMerges merges, BpeOptions options)
    : merges_(std::move(merges)), options_(std::move(options)) {
  static std::atomic<std::uint64_t> encoders = 0;
  identity_ = ++encoders;
  index_merges();
}

void BpeEncoder::Rules::reserve(std::size_t pairs) {
  slots_.assign(std::bit_ceil(std::max<std::size_t>(2, 2 * pairs)), {});
  shift_ = 64 - std::countr_zero(slots_.size());
  filter_.assign(std::max<std::size_t>(1, slots_.size() * 4 / 64), 0);
  filter_shift_ = 64 - std::countr_zero(filter_.size() * 64);
}

std::pair<BpeEncoder::Rule*, bool> BpeEncoder::Rules::add(std::int32_t first, std::int32_t second) {
  Slot& slot = slots_[slot_of(first, second)];
  const bool added = slot.rule.rank == kNoRank;
  const std::uint64_t bit = hash_of(first, second) >> filter_shift_;
  filter_[bit / 64] |= std::uint64_t{1} << bit % 64;
  slot.first = first;
  slot.second = second;
  return {&slot.rule, added};
}

void BpeEncoder::index_merges() {
  const auto symbol = [&](std::string_view text) {
    const std::int32_t number = symbols_.add(text);
    parents_.resize(std::max(parents_.size(), index(number) + 1));
    return number;
  };
  // The loop goes from the last line of the codes file to the first line, as subword-nmt's apply-bpe does. So a pair of
  // symbols that is listed on two lines gets the rank of the first of these lines. If two different pairs make the same
  // symbol, the symbol is split into the pair whose last line comes earlier in the file.
  rules_.reserve(merges_.pairs.size());
  std::string merged;
  for (std::size_t i = merges_.pairs.size(); i-- > 0;) {
    const auto& [first, second] = merges_.pairs[i];
    const Rule made{static_cast<std::int32_t>(i), symbol(merged.assign(first).append(second))};
    const Parents parents{symbol(first), symbol(second)};
    const auto [rule, added] = rules_.add(parents.first, parents.second);
    *rule = made;
    if (added) parents_[index(made.merged)] = parents;
  }
  for (std::size_t c = 0; c < ascii_.size(); ++c) {
    const std::string character(1, static_cast<char>(c));
    ascii_[c] = symbols_.find(character);
    final_ascii_[c] = symbols_.find(character + std::string(kWordEnd));
  }
}

template <class Take>
void BpeEncoder::characters(std::string_view word, Take&& take) const {
  // In version 0.2 of codes files, a character at the end of a word is another symbol than the same character inside a
  // word. In version 0.1 the end of a word is a symbol of its own.
  const bool marked = merges_.version == BpeMerges::Version::v0_2;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t start = at;
    const char32_t c = merges_.bytes ? static_cast<unsigned char>(word[at++]) : next_code_point(word, at);
    const bool final = marked && at == word.size();
    if (c < ascii_.size()) {
      take((final ? final_ascii_ : ascii_)[c], at);
      continue;
    }
    char text[4 + kWordEnd.size()];
    const std::size_t length = word.copy(text, at - start, start);
    if (final) kWordEnd.copy(text + length, kWordEnd.size());
    take(symbols_.find({text, length + (final ? kWordEnd.size() : 0)}), at);
  }
  if (!marked) take(symbols_.find(kWordEnd), word.size());
}

/// Cuts a word of less than kLongWord bytes into pieces. Merges all occurrences of the pair of symbols with the lowest
/// rank (the pair that was learnt first) from left to right, and repeats this until no pair of neighbouring symbols has
/// a merge. Appends the byte offsets at which the pieces end to `ends`.
void BpeEncoder::merge_short(std::string_view word, std::vector<std::size_t>& ends) const {
  struct Symbol {
    std::int32_t number;
    std::uint32_t end;
    Rule next;  // the merge of this symbol with the next symbol of the word, of rank kNoRank if no merge exists
  };
  // The symbols of the word: at most one symbol for each byte, and in version 0.1 of codes files also the separate
  // symbol `</w>`.
  std::array<Symbol, kLongWord + 1> symbols;
  std::size_t count = 0;
  characters(word, [&](std::int32_t symbol, std::size_t end) {
    symbols[count].number = symbol;
    symbols[count++].end = static_cast<std::uint32_t>(end);
  });
  constexpr Rule none{kNoRank, kNoId};
  for (std::size_t i = 0; i + 1 < count; ++i) symbols[i].next = rules_.find(symbols[i].number, symbols[i + 1].number);
  symbols[count - 1].next = none;
  for (;;) {
    // Find the first pair of neighbouring symbols with the lowest rank. The rank and the index of each pair are packed
    // into one number, so that the smallest number is found without unpredictable branches.
    std::int64_t lowest = std::int64_t{kNoRank} << kIndexBits;
    for (std::size_t i = 0; i + 1 < count; ++i)
      lowest = std::min(lowest, std::int64_t{symbols[i].next.rank} << kIndexBits | static_cast<std::int64_t>(i));
    const auto at = static_cast<std::size_t>(lowest & ((1 << kIndexBits) - 1));
    const Rule best = symbols[at].next;
    if (lowest >> kIndexBits == kNoRank) break;
    bool made_before = false;
    std::size_t put = at;
    for (std::size_t i = at; i < count; ++i, ++put) {
      const bool made = symbols[i].next.rank == best.rank;
      if (made) {
        symbols[put] = {best.merged, symbols[i + 1].end, symbols[i + 1].next};
        ++i;
      } else {
        symbols[put] = symbols[i];
      }
      if (put > 0 && (made || made_before))
        symbols[put - 1].next = rules_.find(symbols[put - 1].number, symbols[put].number);
      made_before = made;
    }
    count = put;
    symbols[count - 1].next = none;
  }
  append_ends(std::span(symbols.data(), count), ends);
}

/// Cuts a word of any length into pieces. Appends the byte offsets at which the pieces end to `ends`.
void BpeEncoder::merge_long(std::string_view word, std::vector<std::size_t>& ends) const {
  std::vector<Node> nodes;
  characters(word, [&](std::int32_t symbol, std::size_t end) { nodes.push_back({symbol, end, 0, 0}); });
  merge_linked(nodes);
  append_ends(nodes, ends);
}

/// Merges the symbols of a word of any length with the same result as merge_short(), in O(n log n) time for n symbols.
/// The symbols are the nodes of a linked list. A heap holds an entry for each pair of neighbouring symbols that has a
/// merge: the rank of the merge, and the index of the pair's first node. All occurrences of one merge are merged before
/// the new pairs are pushed onto the heap, as in merge_short().
void BpeEncoder::merge_linked(std::vector<Node>& nodes) const {
  using Candidate = std::pair<std::int32_t, std::int32_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto count = static_cast<std::int32_t>(nodes.size());
  // Pushes the pair of the symbol at node `at` and the next symbol onto the heap, if the pair has a merge.
  const auto offer = [&](std::int32_t at) {
    if (at == kNoNode || nodes[index(at)].next == kNoNode) return;
    const Rule& here = rules_.find(nodes[index(at)].symbol, nodes[index(nodes[index(at)].next)].symbol);
    if (here.rank != kNoRank) heap.emplace(here.rank, at);
  };
  for (std::int32_t i = 0; i < count; ++i) {
    nodes[index(i)].previous = i - 1;
    nodes[index(i)].next = i + 1 < count ? i + 1 : kNoNode;
  }
  for (std::int32_t i = 0; i < count; ++i) offer(i);
  // For each node 1 if the node's symbol has been merged with the symbol before, so that the node is no longer in the
  // list.
  std::vector<char> dead(nodes.size(), 0);
  std::vector<std::int32_t> merged;
  while (!heap.empty()) {
    const std::int32_t rank = heap.top().first;
    merged.clear();
    for (; !heap.empty() && heap.top().first == rank; heap.pop()) {
      const std::int32_t at = heap.top().second;
      Node& left = nodes[index(at)];
      if (dead[index(at)] || left.next == kNoNode) continue;
      const Node& right = nodes[index(left.next)];
      const Rule& here = rules_.find(left.symbol, right.symbol);
      if (here.rank != rank) continue;  // a merge has changed the pair after the pair was pushed onto the heap
      dead[index(left.next)] = 1;
      left = {here.merged, right.end, left.previous, right.next};
      if (left.next != kNoNode) nodes[index(left.next)].previous = at;
      merged.push_back(at);
    }
    for (const std::int32_t at : merged) {
      if (dead[index(at)]) continue;
      offer(nodes[index(at)].previous);
      offer(at);
    }
  }
  std::size_t put = 0;
  for (std::int32_t at = 0; at != kNoNode; at = nodes[index(at)].next) nodes[put++] = nodes[index(at)];
  nodes.resize(put);
}

/// A piece of a word that split_unknown() has to check. `text` is the piece without the mark `</w>` of the word's end;
/// `final` says whether the piece is the last piece of the word.
struct BpeEncoder::Part {
  std::string text;
  bool final;
};

/// Splits the piece `part` of a word into the two symbols from which the piece was merged. Pushes the second symbol and
/// then the first symbol onto the stack `open`. Returns false if the piece cannot be split.
bool BpeEncoder::take_apart(const Part& part, std::vector<Part>& open) const {
  const std::int32_t symbol = symbols_.find(part.final ? part.text + std::string(kWordEnd) : part.text);
  if (symbol == kNoId || parents_[index(symbol)].first == kNoId) return false;
  std::string_view second = symbols_[parents_[index(symbol)].second];
  if (part.final) {
    // The last symbol of a word normally ends with the mark `</w>`. If the word itself contains the text `</w>`, one
    // part of the mark may be in `first` and the other part in `second`; such a piece is not split.
    if (!second.ends_with(kWordEnd)) return false;
    second.remove_suffix(kWordEnd.size());
  }
  const std::string_view first = symbols_[parents_[index(symbol)].first];
  open.push_back({std::string(second), part.final});
  open.push_back({std::string(first), false});
  return true;
}

/// Splits each piece of `word` for which options_.allowed returns false into the two symbols from which the piece was
/// merged, and repeats this until each piece is allowed or cannot be split. `ends` holds the byte offsets at which the
/// pieces end, before and after the call.
void BpeEncoder::split_unknown(std::string_view word, std::vector<std::size_t>& ends) const {
  std::vector<std::size_t> out;
  std::vector<Part> open;
  std::size_t start = 0, end = 0;
  for (std::size_t i = 0; i < ends.size(); start = ends[i++]) {
    open.push_back({std::string(word.substr(start, ends[i] - start)), i + 1 == ends.size()});
    while (!open.empty()) {
      const Part part = std::move(open.back());
      open.pop_back();
      if (part.text.empty()) continue;  // a piece can become empty if the word itself contains the text `</w>`
      const bool known = options_.allowed(part.final ? part.text : part.text + options_.separator);
      if (known || !take_apart(part, open)) out.push_back(end += part.text.size());
    }
  }
  ends = std::move(out);
}

/// Merges the symbols in the nodes with the indices from `first` to `last` - 1 with BPE-dropout, and appends the
/// resulting nodes to `out`. Works like merge_short(), but each time a merge is chosen, every possible merge is left
/// out with the probability sampler.dropout.
void BpeEncoder::merge_some(std::vector<Node>& nodes, std::size_t first, std::size_t last, SubwordSampler& sampler,
                            std::vector<Node>& out) const {
  std::vector<const Rule*> rules;
  while (last - first > 1) {
    const Rule* best = nullptr;
    rules.clear();
    for (std::size_t i = first; i + 1 < last; ++i) {
      const Rule* here = &rules_.find(nodes[i].symbol, nodes[i + 1].symbol);
      if (here->rank == kNoRank || sampler.next() < sampler.dropout) here = nullptr;
      rules.push_back(here);
      if (here && (!best || here->rank < best->rank)) best = here;
    }
    if (!best) break;
    std::size_t put = first;
    for (std::size_t i = first; i < last; ++i, ++put) {
      if (i + 1 < last && rules[i - first] == best) {
        nodes[put] = {best->merged, nodes[i + 1].end, 0, 0};
        ++i;
      } else {
        nodes[put] = nodes[i];
      }
    }
    last = put;
  }
  out.insert(out.end(), nodes.begin() + static_cast<std::ptrdiff_t>(first),
             nodes.begin() + static_cast<std::ptrdiff_t>(last));
}

/// Cuts a word with BPE-dropout, which leaves out merges at random. Appends the byte offsets at which the pieces end to
/// `ends`.
void BpeEncoder::merge_at_random(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler& sampler) const {
  std::vector<Node> nodes, merged;
  characters(word, [&](std::int32_t symbol, std::size_t end) { nodes.push_back({symbol, end, 0, 0}); });
  for (std::size_t at = 0; at < nodes.size(); at += kDropoutPart)
    merge_some(nodes, at, std::min(at + kDropoutPart, nodes.size()), sampler, merged);
  append_ends(merged, ends);
}

/// Cuts `part` into pieces; `part` is a word, or the part of a word between two matches of glossary expressions.
/// Replaces `ends` by the byte offsets in `part` at which the pieces end.
void BpeEncoder::segment_part(std::string_view part, std::vector<std::size_t>& ends, SubwordSampler* sampler) const {
  ends.clear();
  std::size_t first_end = merges_.bytes ? 1 : 0;
  if (!merges_.bytes) next_code_point(part, first_end);
  if (first_end == part.size()) {
    ends.push_back(first_end);
    return;
  }
  if (sampler)
    merge_at_random(part, ends, *sampler);
  else
    part.size() < kLongWord ? merge_short(part, ends) : merge_long(part, ends);
  if (options_.allowed) split_unknown(part, ends);
}

/// Cuts a word into pieces without a look-up in the cache of words that were cut before. Replaces `ends` by the byte
/// offsets at which the pieces end.
void BpeEncoder::segment_anew(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler* sampler) const {
  if (options_.glossaries.empty()) return segment_part(word, ends, sampler);
  std::vector<std::size_t> parts, inside;
  options_.glossaries.isolate(word, parts);
  ends.clear();
  std::size_t start = 0;
  for (const std::size_t end : parts) {
    const std::string_view part = word.substr(start, end - start);
    if (options_.glossaries.matches(part)) {
      ends.push_back(end);
    } else {
      segment_part(part, inside, sampler);
      for (const std::size_t inner : inside) ends.push_back(start + inner);
    }
    start = end;
  }
}

/// Cuts a word into pieces, and calls take(first, last) with pointers to the first and behind the last of the byte
/// offsets at which the pieces end. If `cache` holds the word, the offsets come from the cache. Otherwise the function
/// stores the offsets in `ends`, and adds the word to the cache if the word is not too long and has at most
/// Pieces::kMost pieces. `hash` is hash_of(word).
template <class Take>
void BpeEncoder::segment_cached(Cache& cache, std::string_view word, std::uint64_t hash, std::vector<std::size_t>& ends,
                                Take&& take) const {
  const bool remembers = word.size() <= Cache::kLongestWord;
  if (const Cache::Entry* known = remembers ? cache.find(word, hash) : nullptr)
    return take(known->value.ends, known->value.ends + known->value.count);
  segment_anew(word, ends, nullptr);
  if (remembers && ends.size() <= Pieces::kMost) {
    Pieces& pieces = cache.add(word, hash);
    pieces.count = static_cast<std::uint8_t>(ends.size());
    for (std::size_t i = 0; i < Pieces::kMost; ++i)
      pieces.ends[i] = i < ends.size() ? static_cast<std::uint8_t>(ends[i]) : std::uint8_t{0};
  }
  take(ends.data(), ends.data() + ends.size());
}

void BpeEncoder::segment(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler* sampler) const {
  if (sampler) return segment_anew(word, ends, sampler);
  segment_cached(cache_of_thread<Cache>(identity_), word, hash_of(word), ends,
                 [&](const auto* first, const auto* last) {
                   if (ends.empty() || static_cast<const void*>(first) != ends.data()) ends.assign(first, last);
                 });
}

void BpeEncoder::append(std::string_view tokens, std::string& out, SubwordSampler* sampler) const {
  Cache& cache = cache_of_thread<Cache>(identity_);
  thread_local std::vector<std::size_t> ends;
  struct Token {
    std::size_t start, end;
    std::uint64_t hash;
  };
  // The next tokens to cut. The loop reads 16 tokens before it cuts the first of them, so that the memory of their
  // cache entries is prefetched before the look-ups.
  std::array<Token, 16> some;
  // The output is the text `tokens` with separators inserted. All bytes before the index `copied` are in the output
  // already. copy(end) copies the bytes from `copied` to `end`, which is the next place for a separator.
  std::size_t at = after_spaces(tokens, 0), copied = at, last = at;
  const auto copy = [&](std::size_t end) {
    out.append(tokens.substr(copied, end - copied));
    copied = end;
  };
  while (at < tokens.size()) {
    std::size_t count = 0;
    for (; count < some.size() && at < tokens.size(); ++count) {
      const std::size_t end = next_space(tokens, at);
      some[count] = {at, end, hash_of(tokens.substr(at, end - at))};
      cache.expect(some[count].hash);
      at = after_spaces(tokens, end);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Token token = some[i];
      if (token.start > last + 1) {  // several spaces separate this token from the token before: copy only one space
        copy(last);
        copied = token.start - 1;
      }
      last = token.end;
      const auto separate_pieces = [&](const auto* end, const auto* last_end) {
        for (; end + 1 < last_end; ++end) {
          copy(token.start + *end);
          out.append(options_.separator).append(1, ' ');
        }
      };
      const std::string_view text = tokens.substr(token.start, token.end - token.start);
      if (sampler) {
        segment_anew(text, ends, sampler);
        separate_pieces(ends.data(), ends.data() + ends.size());
      } else {
        segment_cached(cache, text, token.hash, ends, separate_pieces);
      }
    }
  }
  copy(last);
}

BpeMerges BpeMerges::read(const std::string& path, std::int64_t limit, bool bytes) {
  // LineReader does not check for valid UTF-8, because a file of merges of bytes need not be UTF-8. parse() checks the
  // lines of other files.
  LineReader reader(path, InvalidUtf8::keep);
  std::string text;
  for (std::string line; reader.next(line);) text.append(line).append(1, '\n');
  return parse(text, path, limit, bytes);
}

BpeMerges BpeMerges::parse(std::string_view text, const std::string& where, std::int64_t limit, bool bytes) {
  BpeMerges merges;
  merges.version = Version::v0_1;
  merges.bytes = bytes;
  merges.pairs.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const Position position{where, ++number};
    if (number == 1 && line.starts_with("#version:")) {
      line.remove_prefix(9);
      while (line.starts_with(' ')) line.remove_prefix(1);
      if (line == "0.2" || line == "0.2 byte") {
        merges.version = Version::v0_2;
        merges.bytes = bytes || line.ends_with("byte");
      } else if (line != "0.1") {
        throw Error(position, "codes of version '" + std::string(line) + "' (known are 0.1 and 0.2)");
      }
      continue;
    }
    if (limit >= 0 && std::cmp_greater_equal(merges.pairs.size(), limit)) break;
    if (!merges.bytes && find_invalid_utf8(line) != std::string_view::npos)
      throw Error(position, "invalid UTF-8 (convert the file with iconv, or is it a codes file of --bytes?)");
    const auto space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos)
      throw Error(position,
                  "'" + std::string(line.substr(0, 60)) +
                      "' is no merge (a codes file holds two symbols with a space between them on each line)");
    merges.pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  if (merges.bytes && merges.version == Version::v0_1)
    throw Error(Position{where, 1}, "codes of version 0.1 merge characters, not bytes (leave out --bytes)");
  return merges;
}

std::string BpeMerges::text() const {
  std::string out = bytes ? "#version: 0.2 byte\n" : version == Version::v0_2 ? "#version: 0.2\n" : "#version: 0.1\n";
  for (const auto& [first, second] : pairs) out.append(first).append(1, ' ').append(second).append(1, '\n');
  return out;
}

std::pair<std::string_view, std::int64_t> parse_counted(std::string_view line, const Position& where) {
  const auto space = line.find(' ');
  const std::string_view digits = space == std::string::npos ? "" : line.substr(space + 1);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (space == 0 || digits.empty() || count < 0 || error != std::errc() || end != digits.data() + digits.size())
    throw Error(where, "'" + std::string(line.substr(0, 60)) +
                           "' is no piece with a count (build-vocab --counts-output writes such a file)");
  return {line.substr(0, space), count};
}

BpeOptions::Allowed read_counted_vocabulary(const std::string& path, std::int64_t threshold) {
  LineReader reader(path, InvalidUtf8::fail);
  StringIds pieces;
  for (std::string line; reader.next(line);) {
    const auto [piece, count] = parse_counted(line, reader.position());
    if (count >= threshold) pieces.add(piece);
  }
  if (pieces.size() == 0) return nullptr;
  return [pieces](std::string_view piece) { return pieces.find(piece) != kNoId; };
}

}  // namespace heed
