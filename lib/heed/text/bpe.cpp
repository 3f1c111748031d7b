#include "heed/text/bpe.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <mutex>
#include <queue>

#include "heed/base/line_io.h"
#include "heed/base/utf8.h"

namespace heed {
namespace {

constexpr std::string_view kWordEnd = "</w>";
constexpr std::int32_t kNoNode = -1;
constexpr std::size_t kLongWord = 48;       // from here on the heap of merge_long() is faster
constexpr std::size_t kDropoutPart = 1024;  // merging with dropout takes quadratic time

std::size_t index(std::int32_t number) {
  return static_cast<std::size_t>(number);
}

}  // namespace

/// What segment() gave for frequent words: shards, so that threads seldom wait for each other. A full shard is emptied.
struct BpeEncoder::Cache {
  static constexpr std::size_t kShards = 16, kWordsPerShard = 8192, kLongestWord = 64;
  struct Shard {
    std::mutex mutex;
    StringNumbering words;
    std::vector<std::vector<std::size_t>> ends;  // per word
  };
  Shard shards[kShards];

  Shard& shard(std::string_view word) { return shards[std::hash<std::string_view>()(word) >> 32 & (kShards - 1)]; }

  bool find(std::string_view word, std::vector<std::size_t>& ends) {
    Shard& mine = shard(word);
    const std::lock_guard lock(mine.mutex);
    const std::int32_t found = mine.words.find(word);
    if (found == kNoNumber) return false;
    ends = mine.ends[index(found)];
    return true;
  }

  void remember(std::string_view word, const std::vector<std::size_t>& ends) {
    Shard& mine = shard(word);
    const std::lock_guard lock(mine.mutex);
    if (mine.ends.size() >= kWordsPerShard) {
      mine.words = {};
      mine.ends.clear();
    }
    if (index(mine.words.add(word)) == mine.ends.size()) mine.ends.push_back(ends);
  }
};

BpeEncoder::BpeEncoder(BpeMerges merges, BpeOptions options)
    : merges_(std::move(merges)), options_(std::move(options)), cache_(std::make_unique<Cache>()) {
  index_merges();
}

BpeEncoder::~BpeEncoder() = default;

void BpeEncoder::index_merges() {
  const auto symbol = [&](std::string_view text) {
    const std::int32_t number = symbols_.add(text);
    parents_.resize(std::max(parents_.size(), index(number) + 1));
    return number;
  };
  // From the last to the first: of a pair listed twice the first counts, and a symbol that two pairs make comes apart
  // into the pair whose last listing is the earliest, as in the reference.
  std::string merged;
  for (std::size_t i = merges_.pairs.size(); i-- > 0;) {
    const auto& [first, second] = merges_.pairs[i];
    const Rule made{static_cast<std::int32_t>(i), symbol(merged.assign(first).append(second))};
    const Parents parents{symbol(first), symbol(second)};
    const std::size_t pair = index(pairs_.add(parents.first, parents.second));
    if (pair == rules_.size()) {
      rules_.push_back(made);
      parents_[index(made.merged)] = parents;
    } else {
      rules_[pair] = made;
    }
  }
}

const BpeEncoder::Rule* BpeEncoder::rule(std::int32_t first, std::int32_t second) const {
  if (first == kNoNumber || second == kNoNumber) return nullptr;
  const std::int32_t pair = pairs_.find(first, second);
  return pair == kNoNumber ? nullptr : &rules_[index(pair)];
}

std::vector<BpeEncoder::Node> BpeEncoder::characters(std::string_view word) const {
  std::vector<Node> nodes;
  const auto add = [&](std::string_view symbol, std::size_t end) {
    nodes.push_back({symbols_.find(symbol), end, 0, 0});
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t start = at;
    merges_.bytes ? void(++at) : void(decode_utf8(word, at));
    if (at == word.size() && merges_.version == BpeMerges::Version::v0_2) {
      add(std::string(word.substr(start)).append(kWordEnd), at);
    } else {
      add(word.substr(start, at - start), at);
    }
  }
  if (merges_.version == BpeMerges::Version::v0_1) add(kWordEnd, word.size());
  return nodes;
}

/// The merge of lowest rank everywhere, left to right; again until none applies.
void BpeEncoder::merge_short(std::vector<Node>& nodes) const {
  for (;;) {
    const Rule* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
      const Rule* here = rule(nodes[i].symbol, nodes[i + 1].symbol);
      if (here && (!best || here->rank < best->rank)) best = here, at = i;
    }
    if (!best) return;
    const std::int32_t first = nodes[at].symbol, second = nodes[at + 1].symbol;
    std::size_t put = at;
    for (std::size_t i = at; i < nodes.size(); ++i, ++put) {
      if (i + 1 < nodes.size() && nodes[i].symbol == first && nodes[i + 1].symbol == second) {
        nodes[put] = {best->merged, nodes[i + 1].end, 0, 0};
        ++i;
      } else {
        nodes[put] = nodes[i];
      }
    }
    nodes.resize(put);
  }
}

/// The same for words of any length in O(n log n): a heap of (rank, position) over linked nodes. All places of one rank
/// are merged before the pairs they make are looked at, as merge_short() does.
void BpeEncoder::merge_long(std::vector<Node>& nodes) const {
  using Place = std::pair<std::int32_t, std::int32_t>;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> heap;
  const auto count = static_cast<std::int32_t>(nodes.size());
  const auto offer = [&](std::int32_t at) {
    if (at == kNoNode || nodes[index(at)].next == kNoNode) return;
    const Rule* here = rule(nodes[index(at)].symbol, nodes[index(nodes[index(at)].next)].symbol);
    if (here) heap.emplace(here->rank, at);
  };
  for (std::int32_t i = 0; i < count; ++i) {
    nodes[index(i)].previous = i - 1;
    nodes[index(i)].next = i + 1 < count ? i + 1 : kNoNode;
  }
  for (std::int32_t i = 0; i < count; ++i) offer(i);
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
      const Rule* here = rule(left.symbol, right.symbol);
      if (!here || here->rank != rank) continue;  // changed since it was put on the heap
      dead[index(left.next)] = 1;
      left = {here->merged, right.end, left.previous, right.next};
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

/// A piece that may have to come apart, without the end-of-word mark.
struct BpeEncoder::Part {
  std::string text;
  bool final;
};

/// Puts the two symbols a piece came from on `open`, the second below the first; false where it cannot come apart.
bool BpeEncoder::take_apart(const Part& part, std::vector<Part>& open) const {
  const std::int32_t symbol = symbols_.find(part.final ? part.text + std::string(kWordEnd) : part.text);
  if (symbol == kNoNumber || parents_[index(symbol)].first == kNoNumber) return false;
  std::string_view second = symbols_[parents_[index(symbol)].second];
  if (part.final) {
    // Text that reads like the mark may have been merged across it.
    if (!second.ends_with(kWordEnd)) return false;
    second.remove_suffix(kWordEnd.size());
  }
  const std::string_view first = symbols_[parents_[index(symbol)].first];
  open.push_back({std::string(second), part.final});
  open.push_back({std::string(first), false});
  return true;
}

/// Takes pieces that are not allowed apart again, by the merges that made them.
void BpeEncoder::split_unknown(std::string_view word, std::vector<std::size_t>& ends) const {
  std::vector<std::size_t> out;
  std::vector<Part> open;
  std::size_t start = 0, end = 0;
  for (std::size_t i = 0; i < ends.size(); start = ends[i++]) {
    open.push_back({std::string(word.substr(start, ends[i] - start)), i + 1 == ends.size()});
    while (!open.empty()) {
      const Part part = std::move(open.back());
      open.pop_back();
      if (part.text.empty()) continue;  // of text that reads like the mark
      const bool known = options_.allowed(part.final ? part.text : part.text + options_.separator);
      if (known || !take_apart(part, open)) out.push_back(end += part.text.size());
    }
  }
  ends = std::move(out);
}

/// The nodes from `first` to before `last`, merged and appended to `out`: merge_short() that looks past some of the
/// pairs each time, drawn anew.
void BpeEncoder::merge_some(std::vector<Node>& nodes, std::size_t first, std::size_t last, SubwordSampler& sampler,
                            std::vector<Node>& out) const {
  std::vector<const Rule*> rules;
  while (last - first > 1) {
    const Rule* best = nullptr;
    rules.clear();
    for (std::size_t i = first; i + 1 < last; ++i) {
      const Rule* here = rule(nodes[i].symbol, nodes[i + 1].symbol);
      if (here && sampler.next() < sampler.dropout) here = nullptr;
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

/// Replaces `ends` by the ends of the pieces of a word, or of a part of one that merges must not leave.
void BpeEncoder::segment_part(std::string_view part, std::vector<std::size_t>& ends, SubwordSampler* sampler) const {
  ends.clear();
  std::size_t first_end = 1;
  if (!merges_.bytes) decode_utf8(part, first_end = 0);
  if (first_end == part.size()) {
    ends.push_back(first_end);
    return;
  }
  std::vector<Node> nodes = characters(part);
  if (sampler) {
    std::vector<Node> merged;
    for (std::size_t at = 0; at < nodes.size(); at += kDropoutPart)
      merge_some(nodes, at, std::min(at + kDropoutPart, nodes.size()), *sampler, merged);
    nodes.swap(merged);
  } else {
    nodes.size() < kLongWord ? merge_short(nodes) : merge_long(nodes);
  }
  for (const Node& node : nodes)
    if (ends.empty() || node.end > ends.back()) ends.push_back(node.end);  // a lone `</w>` has no bytes
  if (options_.allowed) split_unknown(part, ends);
}

void BpeEncoder::segment(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler* sampler) const {
  const bool cached = !sampler && word.size() <= Cache::kLongestWord;
  if (cached && cache_->find(word, ends)) return;
  if (options_.glossaries.empty()) {
    segment_part(word, ends, sampler);
  } else {
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
  if (cached) cache_->remember(word, ends);
}

BpeMerges BpeMerges::read(const std::string& path, std::int64_t limit, bool bytes) {
  LineReader reader(path, InvalidUtf8::keep);  // bytes need not be UTF-8; parse() looks at the rest
  std::string text;
  for (std::string line; reader.next(line);) text += line + "\n";
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
  StringNumbering pieces;
  for (std::string line; reader.next(line);) {
    const auto [piece, count] = parse_counted(line, reader.position());
    if (count >= threshold) pieces.add(piece);
  }
  if (pieces.size() == 0) return nullptr;
  return [pieces](std::string_view piece) { return pieces.find(piece) != kNoNumber; };
}

}  // namespace heed
