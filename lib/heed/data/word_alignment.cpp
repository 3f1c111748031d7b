#include "heed/data/word_alignment.h"

#include <algorithm>

#include "heed/text/lexicon/alignment_links.h"

namespace heed {
namespace {

/// The pieces first ... last - 1, which form one word.
struct PieceRange {
  std::int32_t first = 0, last = 0;
};

/// Returns the pieces of each word.
std::vector<PieceRange> pieces_of_words(std::span<const int> words) {
  std::vector<PieceRange> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto piece = static_cast<std::int32_t>(i);
    if (static_cast<std::size_t>(words[i]) == out.size()) out.push_back({piece, piece});
    ++out.back().last;
  }
  return out;
}

}  // namespace

std::vector<int> words_of_pieces(const TextModel& model, const std::string& tokens) {
  const std::vector<std::string> pieces = model.subwords().split(tokens);
  return model.subwords().words_of({pieces.begin(), pieces.end()});
}

std::vector<PieceLink> piece_links(std::string_view line, std::span<const int> source_words,
                                   std::span<const int> target_words, const Position& where) {
  const std::vector<PieceRange> sources = pieces_of_words(source_words), targets = pieces_of_words(target_words);
  std::vector<PieceLink> out;
  for (const AlignmentLink& link : read_links(line, std::ssize(sources), std::ssize(targets), "words", where)) {
    const PieceRange from = sources[static_cast<std::size_t>(link.source)];
    const PieceRange to = targets[static_cast<std::size_t>(link.target)];
    for (std::int32_t t = to.first; t < to.last; ++t)
      for (std::int32_t s = from.first; s < from.last; ++s) out.push_back({s, t});
  }
  const auto before = [](const PieceLink& a, const PieceLink& b) {
    return a.target != b.target ? a.target < b.target : a.source < b.source;
  };
  std::sort(out.begin(), out.end(), before);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace heed
