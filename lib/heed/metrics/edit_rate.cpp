#include "heed/metrics/edit_rate.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace heed {
namespace {

constexpr std::size_t kLongestShift = 10, kFarthestShift = 50;
constexpr double kBeam = 25;
constexpr std::int64_t kMostCandidates = 1000;
// The value of a cell in the table of edit distances that is not computed, since it is outside the beam.
constexpr std::int32_t kFar = 1 << 29;

}  // namespace

std::int64_t TranslationEdits::count(std::span<const std::uint32_t> hypothesis,
                                     std::span<const std::uint32_t> reference) {
  if (reference.empty()) return std::ssize(hypothesis);
  reference_ = reference;
  words_.assign(hypothesis.begin(), hypothesis.end());
  candidates_ = 0;
  set_beam();
  cells_.assign(rows_.back().start, kFar);
  shifted_cells_ = cells_;
  for (std::size_t j = 0; j < columns(); ++j) cells_[j] = shifted_cells_[j] = static_cast<std::int32_t>(j);
  for (std::size_t i = 1; i <= words_.size(); ++i) distance_row(words_, i, cells_);
  for (std::int64_t shifts = 0;; ++shifts) {
    const std::int32_t distance = cells_.back();
    Shift best;
    if (distance == 0 || !best_shift(distance, best) || candidates_ >= kMostCandidates || best.gain <= 0)
      return shifts + distance;
    shift(static_cast<std::size_t>(best.start), static_cast<std::size_t>(best.length),
          static_cast<std::size_t>(best.target));
    words_ = shifted_;
    for (std::size_t i = 1; i <= words_.size(); ++i) distance_row(words_, i, cells_);
  }
}

/// Sets beam_: which columns of each row of the edit-distance table (rows: hypothesis words, columns: reference words)
/// are computed, namely the columns near the diagonal from the first to the last cell. If the reference is much longer
/// than the hypothesis, the beam is wider, so that the beams of neighbouring rows overlap.
void TranslationEdits::set_beam() {
  const double ratio = words_.empty() ? 1 : static_cast<double>(reference_.size()) / static_cast<double>(words_.size());
  const auto beam = static_cast<std::int64_t>(kBeam < ratio / 2 ? std::ceil(ratio / 2 + kBeam) : kBeam);
  const auto all = static_cast<std::int64_t>(columns());
  beam_.resize(words_.size() + 1);
  beam_[0] = {0, static_cast<std::int32_t>(all)};
  for (std::size_t i = 1; i < beam_.size(); ++i) {
    const auto diagonal = static_cast<std::int64_t>(std::floor(static_cast<double>(i) * ratio));
    const std::int64_t last = i + 1 == beam_.size() ? all : std::min(all, diagonal + beam);
    beam_[i] = {static_cast<std::int32_t>(std::max<std::int64_t>(0, diagonal - beam)), static_cast<std::int32_t>(last)};
  }
  rows_.clear();
  std::size_t size = 0;
  for (std::size_t i = 0; i < beam_.size(); ++i) {
    // A row also has the cells that the next row reads, which lie above its own and left of them.
    auto [first, last] = beam_[i];
    if (i + 1 < beam_.size()) {
      first = std::min(first, std::max(0, beam_[i + 1].first - 1));
      last = std::max(last, beam_[i + 1].second);
    }
    rows_.push_back({first, size});
    size += static_cast<std::size_t>(last - first);
  }
  rows_.push_back({0, size});
}

void TranslationEdits::distance_row(const std::vector<std::uint32_t>& words, std::size_t i,
                                    std::vector<std::int32_t>& cells) const {
  const auto cell_of = [&](std::size_t in_row, std::int32_t column) -> std::int32_t& {
    return cells[index(in_row, static_cast<std::size_t>(column))];
  };
  const auto [first, last] = beam_[i];
  const std::uint32_t word = words[i - 1];
  std::int32_t left = kFar;
  std::int32_t j = first;
  if (j == 0) {
    cell_of(i, 0) = left = cell_of(i - 1, 0) + 1;
    ++j;
  }
  if (j >= last) return;
  // above[0] is the cell above and to the left.
  const std::int32_t* above = &cell_of(i - 1, j - 1);
  for (std::int32_t* cell = &cell_of(i, j); j < last; ++j, ++above, ++cell) {
    const std::int32_t diagonal = above[0] + (reference_[static_cast<std::size_t>(j - 1)] == word ? 0 : 1);
    left = std::min({diagonal, above[1] + 1, left + 1, kFar});
    *cell = left;
  }
}

/// Follows the cheapest edits back from the last cell of the edit-distance table to the first. Of equally cheap edits,
/// a match or substitution is preferred to a deletion, and a deletion to an insertion. Stores in aligned_ which
/// hypothesis word each reference word is aligned with, and in wrong_words_ and wrong_references_ which words have an
/// error. Returns the edit distance.
std::int32_t TranslationEdits::align() {
  aligned_.assign(reference_.size(), -1);
  wrong_words_.assign(words_.size() + 1, 0);
  wrong_references_.assign(reference_.size() + 1, 0);
  std::size_t i = words_.size(), j = reference_.size();
  while (i > 0 || j > 0) {
    const std::int32_t here = cells_[index(i, j)];
    const bool same = i > 0 && j > 0 && words_[i - 1] == reference_[j - 1];
    if (i > 0 && j > 0 && here == cells_[index(i - 1, j - 1)] + (same ? 0 : 1)) {
      --i, --j;
      aligned_[j] = static_cast<std::int32_t>(i);
      wrong_words_[i + 1] = wrong_references_[j + 1] = same ? 0 : 1;
    } else if (i > 0 && here == cells_[index(i - 1, j)] + 1) {
      --i;
      wrong_words_[i + 1] = 1;
    } else {
      --j;
      aligned_[j] = static_cast<std::int32_t>(i) - 1;
      wrong_references_[j + 1] = 1;
    }
  }
  for (std::size_t k = 1; k < wrong_words_.size(); ++k) wrong_words_[k] += wrong_words_[k - 1];
  for (std::size_t k = 1; k < wrong_references_.size(); ++k) wrong_references_[k] += wrong_references_[k - 1];
  return cells_.back();
}

/// Sets shifted_ to a copy of words_ in which the `length` words from index `start` on are moved to before the word at
/// index `target`. As in Tercom, a `target` from start to start + length means the index target + length.
void TranslationEdits::shift(std::size_t start, std::size_t length, std::size_t target) {
  shifted_ = words_;
  const auto at = [this](std::size_t i) {
    return shifted_.begin() + static_cast<std::ptrdiff_t>(std::min(i, shifted_.size()));
  };
  if (target < start)
    std::rotate(at(target), at(start), at(start + length));
  else
    std::rotate(at(start), at(start + length), at(target > start + length ? target : target + length));
}

/// Returns the edit distance between shifted_ (the hypothesis after a shift) and the reference. shifted_ has the same
/// words as words_ before index `first`, so these rows of the table are not computed again. If a row behind the shifted
/// words equals the same row of words_, the remaining rows are equal too and are not computed.
std::int32_t TranslationEdits::shifted_distance(std::size_t first) {
  // From this index on, the hypothesis before the shift (words_) and after the shift (shifted_) have the same words.
  std::size_t same_from = words_.size();
  while (same_from > first && shifted_[same_from - 1] == words_[same_from - 1]) --same_from;
  if (same_from == first) return cells_.back();
  std::copy(cells_.begin() + static_cast<std::ptrdiff_t>(rows_[first].start),
            cells_.begin() + static_cast<std::ptrdiff_t>(rows_[first + 1].start),
            shifted_cells_.begin() + static_cast<std::ptrdiff_t>(rows_[first].start));
  for (std::size_t i = first + 1; i <= words_.size(); ++i) {
    distance_row(shifted_, i, shifted_cells_);
    if (i < same_from) continue;
    const auto [low, high] = beam_[i];
    const auto at = static_cast<std::ptrdiff_t>(index(i, static_cast<std::size_t>(low)));
    if (std::equal(cells_.begin() + at, cells_.begin() + at + (high - low), shifted_cells_.begin() + at))
      return cells_.back();
  }
  return shifted_cells_.back();
}

/// Tries all candidate shifts of words and sets `best` to the best one: the shift that lowers the edit distance most;
/// of equally good shifts the one with the most words, then the smallest start, then the smallest target. Returns false
/// when there is no candidate.
bool TranslationEdits::best_shift(std::int32_t distance, Shift& best) {
  align();
  bool found = false;
  const std::size_t words = words_.size(), references = reference_.size();
  const auto rank = [](const Shift& s) { return std::tuple(s.gain, s.length, -s.start, -s.target); };
  for (std::size_t start = 0; start < words; ++start) {
    const std::size_t end_of_others = std::min(references, start + kFarthestShift + 1);
    for (std::size_t other = start - std::min(start, kFarthestShift); other < end_of_others; ++other) {
      if (words_[start] != reference_[other]) continue;
      for (std::size_t length = 1; length <= kLongestShift && start + length <= words && other + length <= references &&
                                   words_[start + length - 1] == reference_[other + length - 1];
           ++length) {
        // A shift is a candidate if at least one of the words to be moved and at least one of the equal reference words
        // has an error, and if the words to be moved are not yet aligned with these reference words.
        if (wrong_words_[start + length] == wrong_words_[start]) continue;
        if (wrong_references_[other + length] == wrong_references_[other]) continue;
        const auto begin = static_cast<std::int32_t>(start), end = static_cast<std::int32_t>(start + length);
        if (begin <= aligned_[other] && aligned_[other] < end) continue;
        std::int32_t previous = -1;
        // The words are moved to behind a hypothesis word: to behind the word that is aligned with the reference word
        // before the equal reference words (offset 0), or that is aligned with one of the equal reference words (offset
        // 1 ... length).
        for (std::size_t offset = 0; offset <= length; ++offset) {
          const std::size_t behind = other + offset;
          if (behind > references) break;
          const std::int32_t target = behind == 0 ? 0 : aligned_[behind - 1] + 1;
          if (target == previous) continue;
          previous = target;
          shift(start, length, static_cast<std::size_t>(target));
          const std::int32_t gain = distance - shifted_distance(std::min(start, static_cast<std::size_t>(target)));
          const Shift candidate = {gain, static_cast<std::int32_t>(length), begin, target};
          ++candidates_;
          if (!found || rank(candidate) > rank(best)) best = candidate;
          found = true;
        }
        if (candidates_ >= kMostCandidates) return found;
      }
    }
  }
  return found;
}

}  // namespace heed
