#include "heed/text/unigram/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <span>
#include <utility>

#include "heed/base/utf8.h"
#include "heed/text/bpe/bpe.h"

namespace heed {
namespace {

/// How far the score of the unknown piece lies below the lowest score of a normal piece of the model.
constexpr float kUnknownPenalty = 10;
// UnigramModel::segment() resets its sum of scores to 0 when the size of the sum exceeds this value, as SentencePiece
// does.
constexpr float kScoreReset = 100000;

/// Returns the length in bytes of a UTF-8 character that starts with the byte `first`; 1 if `first` cannot start a
/// character.
std::size_t character_bytes(char first) {
  constexpr std::uint8_t kBytes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return kBytes[static_cast<unsigned char>(first) >> 4];
}

/// Returns the score that SentencePiece gives a user-defined piece of `length` bytes (or characters). The score in the
/// model file is not used.
float user_defined_score(std::size_t length) {
  return static_cast<float>(0.1 * (static_cast<double>(length) - 1));
}

}  // namespace

UnigramModel::UnigramModel(const SentencePieceModel& model)
    : scores_(model.pieces.size()), lattice_scores_(model.pieces.size()) {
  using Kind = SentencePieceModel::Kind;
  std::vector<std::pair<std::string_view, std::int32_t>> keys;
  float lowest = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const auto& piece = model.pieces[i];
    const auto number = static_cast<std::int32_t>(i);
    const bool user_defined = piece.kind == Kind::user_defined;
    scores_[i] = user_defined ? user_defined_score(piece.text.size()) : piece.score;
    lattice_scores_[i] = user_defined ? user_defined_score(count_code_points(piece.text)) : piece.score;
    if (user_defined || piece.kind == Kind::normal) keys.emplace_back(piece.text, number);
    if (piece.kind == Kind::normal) lowest = std::min(lowest, piece.score);
    if (piece.kind == Kind::unknown) unknown_ = number;
  }
  if (model.source.empty()) {
    const auto other = [&](const auto& key) {
      return model.pieces[static_cast<std::size_t>(key.second)].kind != Kind::user_defined;
    };
    symbols_ = PieceTrie({std::partition(keys.begin(), keys.end(), other), keys.end()});
  }
  trie_ = PieceTrie(std::move(keys));
  unknown_score_ = lowest - kUnknownPenalty;
  largest_score_ = std::abs(unknown_score_);
  for (const float score : scores_) largest_score_ = std::max(largest_score_, std::abs(score));
}

UnigramModel::Symbol UnigramModel::next_symbol(std::string_view text, std::size_t at) const {
  for (; !symbols_.empty() && at < text.size(); at += character_bytes(text[at])) {
    Symbol symbol{at, at, -1};
    symbols_.prefixes(text.substr(at), [&](std::size_t bytes, std::int32_t piece) {
      symbol = {at, at + bytes, piece};
      return true;
    });
    if (symbol.piece >= 0) return symbol;
  }
  return {text.size(), text.size(), -1};
}

float UnigramModel::segment(std::string_view text, std::vector<PieceSpan>& spans, float before) const {
  /// The best segmentation of the text from its start to one byte offset: the score of this segmentation, its last
  /// piece, and the offset at which that piece starts.
  struct Best {
    float score;
    std::int32_t piece;
    std::uint32_t start;
  };
  constexpr std::uint32_t kNone = UINT32_MAX;
  thread_local std::vector<Best> best;
  best.assign(text.size() + 1, {0, -1, kNone});
  best[0].score = before;
  std::size_t frontier = 0;
  Symbol symbol = next_symbol(text, 0);
  for (std::size_t start = 0; start < text.size();) {
    float here = best[start].score;
    if (here < -kScoreReset || here > kScoreReset) {
      for (std::size_t i = start; i <= frontier; ++i)
        if (i == start || best[i].start != kNone) best[i].score -= here;
      here = 0;
    }
    const auto offer = [&](std::size_t end, std::int32_t piece, float score) {
      Best& there = best[end];
      if (there.start == kNone || score > there.score) there = {score, piece, static_cast<std::uint32_t>(start)};
      frontier = std::max(frontier, end);
    };
    if (start == symbol.begin) {
      offer(symbol.end, symbol.piece, scores_[static_cast<std::size_t>(symbol.piece)] + here);
      start = symbol.end;
      symbol = next_symbol(text, start);
      continue;
    }
    const std::size_t next = std::min(start + character_bytes(text[start]), symbol.begin);
    bool known = false;
    if (!trie_.empty()) {
      PieceTrie::Walk walk = trie_.walk();
      for (std::size_t at = start; at < symbol.begin && walk.step(static_cast<unsigned char>(text[at]));) {
        ++at;
        if (walk.value() < 0) continue;
        offer(at, walk.value(), scores_[static_cast<std::size_t>(walk.value())] + here);
        known |= at == next;
      }
    }
    if (!known) offer(next, unknown_, unknown_score_ + here);
    start = next;
  }
  spans.clear();
  for (std::size_t end = text.size(); end > 0; end = best[end].start)
    spans.push_back({best[end].piece, static_cast<std::uint32_t>(end)});
  std::reverse(spans.begin(), spans.end());
  return best.back().score;
}

/// The graph of all pieces that occur in a text. A node is a place between two characters, given as a byte offset. An
/// edge is an occurrence of a piece, which leads from the offset at which the piece starts to the offset at which it
/// ends, so that each path from the start to the end of the text is a segmentation. Edges are sorted by their start,
/// then by their length. Edge 0 stands for no piece: it is an edge of length 0 at the start of the text.
struct UnigramModel::Lattice {
  /// An occurrence of a piece in the text: the piece's index in the model, and its score.
  struct Edge {
    std::int32_t piece;
    float score;
    // The byte offsets in the text at which the piece starts and ends.
    std::uint32_t start, end;
    // The highest score of a path from the start of the text that ends with this edge, the edge's own score included.
    float best = 0;
  };
  std::vector<Edge> edges;
  /// The indices of all edges (occurrences of pieces), sorted by the offset at which the edge ends; edges with equal
  /// ends stay in the order of their indices.
  std::vector<std::uint32_t> by_end;
  /// For each byte offset of the text, the index in `by_end` of the first edge that ends at this offset; and, as the
  /// last element, the size of `by_end`.
  std::vector<std::uint32_t> first_by_end;

  /// Returns the indices of the edges (occurrences of pieces) that end at the byte offset `end`.
  std::span<const std::uint32_t> ending_at(std::uint32_t end) const {
    return std::span(by_end).subspan(first_by_end[end], first_by_end[end + 1] - first_by_end[end]);
  }

  /// Sorts the edges by their ends: fills in `by_end` and `first_by_end` for a text of `size` bytes.
  void index(std::size_t size) {
    first_by_end.assign(size + 2, 0);
    for (const Edge& edge : edges) ++first_by_end[edge.end + 1];
    for (std::size_t i = 1; i < first_by_end.size(); ++i) first_by_end[i] += first_by_end[i - 1];
    std::vector<std::uint32_t> next(first_by_end.begin(), first_by_end.end() - 1);
    by_end.resize(edges.size());
    for (std::uint32_t i = 0; i < edges.size(); ++i) by_end[next[edges[i].end]++] = i;
  }

  /// Chooses, among the edges that end at the byte offset `end`, the edge whose paths from the start of the text have
  /// the highest score (Edge::best). Returns the index of this edge, and the sum of its `best` and `score`. `score` is
  /// the score of the edge that follows.
  std::pair<std::uint32_t, float> best_before(std::uint32_t end, float score) const {
    std::pair<std::uint32_t, float> best{0, 0};
    bool found = false;
    for (const std::uint32_t i : ending_at(end)) {
      const float sum = edges[i].best + score;
      if (!found || sum > best.second) best = {i, sum};
      found = true;
    }
    return best;
  }

  /// Computes Edge::best of all edges and returns the path with the highest score, which is the best segmentation.
  PiecePath viterbi() {
    for (std::size_t i = 1; i < edges.size(); ++i) edges[i].best = best_before(edges[i].start, edges[i].score).second;
    auto [at, score] = best_before(static_cast<std::uint32_t>(first_by_end.size() - 2), 0);
    PiecePath path{{}, score};
    for (; at != 0; at = best_before(edges[at].start, edges[at].score).first)
      path.spans.push_back({edges[at].piece, edges[at].end});
    std::reverse(path.spans.begin(), path.spans.end());
    return path;
  }
};

/// Calls take(start, end, piece, score) for every occurrence of a piece in `text`, sorted by start, then by end (both
/// are byte offsets). `scores` has the score of each piece of the model: scores_ or lattice_scores_.
template <class Take>
void UnigramModel::for_each_edge(std::string_view text, const std::vector<float>& scores, Take&& take) const {
  Symbol symbol = next_symbol(text, 0);
  for (std::size_t start = 0; start < text.size();) {
    if (start == symbol.begin) {
      take(start, symbol.end, symbol.piece, scores[static_cast<std::size_t>(symbol.piece)]);
      start = symbol.end;
      symbol = next_symbol(text, start);
      continue;
    }
    const std::size_t next = std::min(start + character_bytes(text[start]), symbol.begin);
    bool known = false;
    trie_.prefixes(text.substr(start, symbol.begin - start), [&](std::size_t bytes, std::int32_t piece) {
      take(start, start + bytes, piece, scores[static_cast<std::size_t>(piece)]);
      known |= start + bytes == next;
      return true;
    });
    if (!known) take(start, next, unknown_, unknown_score_);
    start = next;
  }
}

UnigramModel::Lattice UnigramModel::lattice(std::string_view text) const {
  Lattice lattice;
  lattice.edges.push_back({-1, 0, 0, 0});
  for_each_edge(text, lattice_scores_, [&](std::size_t start, std::size_t end, std::int32_t piece, float score) {
    lattice.edges.push_back({piece, score, static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(end)});
  });
  lattice.index(text.size());
  return lattice;
}

double UnigramModel::segment_with_margin(std::string_view text, std::vector<PieceSpan>& spans) const {
  /// The scores of the best and the second-best segmentation of the text from its start to one byte offset.
  struct Two {
    double best = -std::numeric_limits<double>::infinity(), second = best;
    std::int32_t piece = -1;  // index of the last piece of the best segmentation
    std::uint32_t start = 0;  // byte offset at which that last piece starts
  };
  thread_local std::vector<Two> two;
  two.assign(text.size() + 1, {});
  two[0].best = 0;
  for_each_edge(text, scores_, [&](std::size_t start, std::size_t end, std::int32_t piece, float score) {
    const Two& before = two[start];
    Two& here = two[end];
    const double best = before.best + static_cast<double>(score), second = before.second + static_cast<double>(score);
    here.second = std::max({here.second, second, std::min(here.best, best)});
    if (best > here.best) {
      here.best = best;
      here.piece = piece;
      here.start = static_cast<std::uint32_t>(start);
    }
  });
  spans.clear();
  for (std::size_t end = text.size(); end > 0; end = two[end].start)
    spans.push_back({two[end].piece, static_cast<std::uint32_t>(end)});
  std::reverse(spans.begin(), spans.end());
  return two.back().best - two.back().second;
}

namespace {

/// SentencePiece's limits for n_best(), which extends partial paths (paths from some place to the end of the text).
/// When the queue holds kMostOpen partial paths, or when kMostPaths partial paths have been added, the search keeps
/// only the best ones in the queue (kFewestOpen at most). After kMostShrinks such cuts, or with kMostPathsEver partial
/// paths in all, n_best() returns the best segmentation only.
constexpr std::size_t kMostOpen = 10000, kFewestOpen = 512, kMostPaths = 100000, kMostPathsEver = 500000;
constexpr int kMostShrinks = 10;

/// A partial path: a path of edges (occurrences of pieces) to the end of the text, which the A* search of n_best()
/// extends to the left. `edge` is its first edge.
struct Partial {
  std::uint32_t edge;
  // The index of the partial path that is left if this path's first edge is removed.
  std::uint32_t next;
  // The score of the best path through the whole text that ends with this partial path.
  float estimate;
  // The score of this partial path: the sum of the scores of its edges.
  float score;
};

/// Compares two partial paths, given by their indices, by the score of the best whole path that ends with them
/// (`estimate`), so that a priority queue returns the path with the highest estimate first.
struct IsWorse {
  const std::vector<Partial>* partials;
  bool operator()(std::uint32_t a, std::uint32_t b) const { return (*partials)[a].estimate < (*partials)[b].estimate; }
};

}  // namespace

std::vector<PiecePath> UnigramModel::n_best(std::string_view text, int count) const {
  if (text.empty()) return {PiecePath{}};
  Lattice lattice = this->lattice(text);
  const PiecePath best = lattice.viterbi();
  if (count <= 1) return {best};

  constexpr std::uint32_t kEndEdge = UINT32_MAX;
  std::vector<Partial> partials{{kEndEdge, 0, best.score, 0}};
  using Open = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, IsWorse>;
  Open open(IsWorse{&partials});
  open.push(0);
  const std::size_t fewest = std::min(kFewestOpen, static_cast<std::size_t>(count) * 10);
  // `alive` counts the partial paths that were in use at the last cut of the queue, and those added since. If `alive`
  // reaches `most_alive`, the queue is cut to its best partial paths.
  std::size_t alive = 1, most_alive = kMostPaths;
  int shrinks = 0;
  std::vector<PiecePath> paths;
  while (!open.empty()) {
    const std::uint32_t top = open.top();
    open.pop();
    const std::uint32_t edge = partials[top].edge;
    if (edge == 0) {
      PiecePath& path = paths.emplace_back();
      for (std::uint32_t i = partials[top].next; partials[i].edge != kEndEdge; i = partials[i].next)
        path.spans.push_back({lattice.edges[partials[i].edge].piece, lattice.edges[partials[i].edge].end});
      path.score = partials[top].estimate;
      if (std::cmp_equal(paths.size(), count)) break;
      continue;
    }
    const auto end = edge == kEndEdge ? static_cast<std::uint32_t>(text.size()) : lattice.edges[edge].start;
    const auto before = lattice.ending_at(end);
    for (const std::uint32_t i : before) {
      const float score = partials[top].score;
      partials.push_back({i, top, lattice.edges[i].best + score, lattice.edges[i].score + score});
      open.push(static_cast<std::uint32_t>(partials.size() - 1));
    }
    alive += before.size();
    if (partials.size() >= kMostPathsEver) return {best};
    if (open.size() < kMostOpen && (open.size() <= fewest || alive < most_alive)) continue;
    if (shrinks++ >= kMostShrinks) return {best};
    Open kept(IsWorse{&partials});
    std::vector<bool> reached(partials.size());
    alive = 0;
    for (std::size_t i = std::min(open.size(), fewest); i-- > 0; open.pop()) {
      kept.push(open.top());
      for (std::uint32_t at = open.top(); !reached[at]; at = partials[at].next) reached[at] = true, ++alive;
    }
    open = std::move(kept);
    most_alive = alive + kMostPaths;
  }
  return paths;
}

PiecePath UnigramModel::sample(std::string_view text, SubwordSampler& sampler) const {
  const Lattice lattice = this->lattice(text);
  // forward[end] is the logarithm of a sum over all segmentations of the first `end` bytes of the text, each of which
  // contributes exp(alpha * its score).
  std::vector<double> forward(text.size() + 1, 0);
  const auto weight = [&](std::uint32_t i) {
    return forward[lattice.edges[i].start] + sampler.alpha * static_cast<double>(lattice.edges[i].score);
  };
  for (std::uint32_t end = 1; end <= text.size(); ++end) {
    const auto edges = lattice.ending_at(end);
    double highest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const std::uint32_t i : edges) highest = std::max(highest, weight(i));
    for (const std::uint32_t i : edges) sum += std::exp(weight(i) - highest);
    forward[end] = highest + std::log(sum);
  }
  PiecePath path;
  for (auto end = static_cast<std::uint32_t>(text.size()); end > 0;) {
    const auto edges = lattice.ending_at(end);
    double left = sampler.next();
    std::uint32_t chosen = edges.back();
    for (const std::uint32_t i : edges) {
      left -= std::exp(weight(i) - forward[end]);
      if (left >= 0) continue;
      chosen = i;
      break;
    }
    path.spans.push_back({lattice.edges[chosen].piece, end});
    path.score += lattice.edges[chosen].score;
    end = lattice.edges[chosen].start;
  }
  std::reverse(path.spans.begin(), path.spans.end());
  return path;
}

}  // namespace heed
