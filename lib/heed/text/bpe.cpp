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
constexpr std::int32_t kNoSymbol = -1, kNoNode = -1;
constexpr std::size_t kLongWord = 48;  // from here on the heap of merge_long() is faster

std::uint64_t pair_key(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
}

std::size_t index(std::int32_t node) {
  return static_cast<std::size_t>(node);
}

}  // namespace

/// What segment() gave for frequent words: shards, so that threads seldom wait for each other. A full shard is emptied.
struct BpeEncoder::Cache {
  static constexpr std::size_t kShards = 16, kWordsPerShard = 8192, kLongestWord = 64;
  struct Shard {
    std::mutex mutex;
    StringMap<std::vector<std::size_t>> ends;
  };
  Shard shards[kShards];

  Shard& shard(std::string_view word) { return shards[StringHash()(word) % kShards]; }

  bool find(std::string_view word, std::vector<std::size_t>& ends) {
    Shard& mine = shard(word);
    const std::lock_guard lock(mine.mutex);
    const auto found = mine.ends.find(word);
    if (found == mine.ends.end()) return false;
    ends = found->second;
    return true;
  }

  void remember(std::string_view word, const std::vector<std::size_t>& ends) {
    Shard& mine = shard(word);
    const std::lock_guard lock(mine.mutex);
    if (mine.ends.size() >= kWordsPerShard) mine.ends.clear();
    mine.ends.emplace(word, ends);
  }
};

BpeEncoder::BpeEncoder(BpeMerges merges, std::string separator, std::optional<StringSet> allowed)
    : merges_(std::move(merges)),
      separator_(std::move(separator)),
      allowed_(std::move(allowed)),
      cache_(std::make_unique<Cache>()) {
  if (allowed_ && allowed_->empty()) allowed_.reset();
  index_merges();
}

BpeEncoder::~BpeEncoder() = default;

std::int32_t BpeEncoder::intern(const std::string& symbol) {
  return symbols_.emplace(symbol, static_cast<std::int32_t>(symbols_.size())).first->second;
}

void BpeEncoder::index_merges() {
  // From the last to the first: of a pair listed twice the first counts, and a symbol that two pairs make comes apart
  // into the pair whose last listing is the earliest, as in the reference.
  for (std::size_t i = merges_.pairs.size(); i-- > 0;) {
    const auto& [first, second] = merges_.pairs[i];
    const Rule made{static_cast<std::int32_t>(i), intern(first + second)};
    const bool fresh = rules_.insert_or_assign(pair_key(intern(first), intern(second)), made).second;
    if (allowed_ && fresh) parents_.insert_or_assign(first + second, merges_.pairs[i]);
  }
}

const BpeEncoder::Rule* BpeEncoder::rule(std::int32_t first, std::int32_t second) const {
  if (first == kNoSymbol || second == kNoSymbol) return nullptr;
  const auto found = rules_.find(pair_key(first, second));
  return found == rules_.end() ? nullptr : &found->second;
}

std::vector<BpeEncoder::Node> BpeEncoder::characters(std::string_view word) const {
  std::vector<Node> nodes;
  const auto add = [&](std::string_view symbol, std::size_t end) {
    const auto found = symbols_.find(symbol);
    nodes.push_back({found == symbols_.end() ? kNoSymbol : found->second, end, 0, 0});
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t start = at;
    decode_utf8(word, at);
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

/// The pair a piece came from, without the end-of-word mark; nullopt where it cannot come apart.
std::optional<std::pair<std::string, std::string>> BpeEncoder::parent(const std::string& text, bool final) const {
  const auto found = parents_.find(final ? text + std::string(kWordEnd) : text);
  if (found == parents_.end()) return std::nullopt;
  auto pair = found->second;
  if (final) {
    // Text that reads like the mark may have been merged across it.
    if (!pair.second.ends_with(kWordEnd)) return std::nullopt;
    pair.second.resize(pair.second.size() - kWordEnd.size());
  }
  return pair;
}

/// Takes pieces that are not allowed apart again, by the merges that made them.
void BpeEncoder::split_unknown(std::string_view word, std::vector<std::size_t>& ends) const {
  struct Part {
    std::string text;
    bool final;
  };
  std::vector<std::size_t> out;
  std::vector<Part> open;
  std::size_t start = 0, end = 0;
  for (std::size_t i = 0; i < ends.size(); start = ends[i++]) {
    open.push_back({std::string(word.substr(start, ends[i] - start)), i + 1 == ends.size()});
    while (!open.empty()) {
      const Part part = std::move(open.back());
      open.pop_back();
      const bool known = part.text.empty() || allowed_->contains(part.final ? part.text : part.text + separator_);
      const auto pair = known ? std::nullopt : parent(part.text, part.final);
      if (pair) {
        open.push_back({pair->second, part.final});
        open.push_back({pair->first, false});
      } else {
        out.push_back(end += part.text.size());
      }
    }
  }
  ends = std::move(out);
}

void BpeEncoder::segment(std::string_view word, std::vector<std::size_t>& ends) const {
  ends.clear();
  std::size_t first_end = 0;
  decode_utf8(word, first_end);
  if (first_end == word.size()) {
    ends.push_back(first_end);
    return;
  }
  const bool cached = word.size() <= Cache::kLongestWord;
  if (cached && cache_->find(word, ends)) return;
  std::vector<Node> nodes = characters(word);
  nodes.size() < kLongWord ? merge_short(nodes) : merge_long(nodes);
  for (const Node& node : nodes)
    if (ends.empty() || node.end > ends.back()) ends.push_back(node.end);  // a lone `</w>` has no bytes
  if (allowed_) split_unknown(word, ends);
  if (cached) cache_->remember(word, ends);
}

BpeMerges BpeMerges::read(const std::string& path, std::int64_t limit) {
  LineReader reader(path, InvalidUtf8::fail);
  std::string text;
  for (std::string line; reader.next(line);) text += line + "\n";
  return parse(text, path, limit);
}

BpeMerges BpeMerges::parse(std::string_view text, const std::string& where, std::int64_t limit) {
  BpeMerges merges;
  merges.version = Version::v0_1;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const Position position{where, ++number};
    if (number == 1 && line.starts_with("#version:")) {
      line.remove_prefix(9);
      while (line.starts_with(' ')) line.remove_prefix(1);
      if (line == "0.2") {
        merges.version = Version::v0_2;
      } else if (line != "0.1") {
        throw Error(position, "codes of version '" + std::string(line) + "' (known are 0.1 and 0.2)");
      }
      continue;
    }
    if (limit >= 0 && std::cmp_greater_equal(merges.pairs.size(), limit)) break;
    const auto space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos)
      throw Error(position,
                  "'" + std::string(line.substr(0, 60)) +
                      "' is no merge (a codes file holds two symbols with a space between them on each line)");
    merges.pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

std::string BpeMerges::text() const {
  std::string out = version == Version::v0_2 ? "#version: 0.2\n" : "#version: 0.1\n";
  for (const auto& [first, second] : pairs) out.append(first).append(1, ' ').append(second).append(1, '\n');
  return out;
}

StringSet read_counted_vocabulary(const std::string& path, std::int64_t threshold) {
  LineReader reader(path, InvalidUtf8::fail);
  StringSet pieces;
  for (std::string line; reader.next(line);) {
    const auto space = line.find(' ');
    const std::string_view digits = space == std::string::npos ? "" : std::string_view(line).substr(space + 1);
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (space == 0 || digits.empty() || error != std::errc() || end != digits.data() + digits.size())
      throw Error(reader.position(), "'" + line.substr(0, 60) +
                                         "' is no piece with a count (build-vocab --counts-output writes such a file)");
    if (count >= threshold) pieces.insert(line.substr(0, space));
  }
  return pieces;
}

}  // namespace heed
