#include "heed/data/word_alignment.h"

#include <algorithm>
#include <utility>

#include "heed/text/trees/linear_tree.h"

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

std::vector<PieceLink> piece_links(std::vector<AlignmentLink> words, std::span<const int> source_words,
                                   std::span<const int> target_words, std::int32_t most) {
  const std::vector<PieceRange> sources = pieces_of_words(source_words), targets = pieces_of_words(target_words);
  const auto order = [](const auto& link) { return std::pair(link.target, link.source); };
  // A link that occurs again must not be turned into pieces again: their number may be large.
  std::ranges::sort(words, {}, order);
  const auto repeated = std::ranges::unique(words, {}, order);
  words.erase(repeated.begin(), repeated.end());
  std::vector<PieceLink> out;
  for (const AlignmentLink& link : words) {
    if (link.source >= std::ssize(sources) || link.target >= std::ssize(targets))
      throw Error("internal: a link leads out of the words of its sentences");
    const PieceRange from = sources[static_cast<std::size_t>(link.source)];
    const PieceRange to = targets[static_cast<std::size_t>(link.target)];
    for (std::int32_t t = to.first; t < std::min(to.last, most); ++t)
      for (std::int32_t s = from.first; s < std::min(from.last, most); ++s) out.push_back({s, t});
  }
  std::ranges::sort(out, {}, order);
  return out;
}

std::vector<PieceLink> piece_links(std::string_view line, std::span<const int> source_words,
                                   std::span<const int> target_words, const Position& where, std::int32_t most) {
  const auto count = [](std::span<const int> words) { return words.empty() ? 0 : words.back() + 1; };
  return piece_links(read_links(line, count(source_words), count(target_words), "words", where), source_words,
                     target_words, most);
}

std::vector<AlignmentLink> links_to_leaves(std::string_view linear_tree) {
  const std::vector<std::string_view> tokens = words_of_line(linear_tree);
  const auto is_word = [](std::string_view token) { return kind_of_linear_token(token) == LinearTreeToken::word; };
  const std::int64_t last = std::ranges::count_if(tokens, is_word) - 1;
  std::vector<AlignmentLink> out;
  std::int64_t written = 0;
  for (std::int64_t i = 0; i < std::ssize(tokens); ++i) {
    out.push_back({std::min(written, last), i});
    written += is_word(tokens[static_cast<std::size_t>(i)]);
  }
  return out;
}

std::vector<PieceLink> links_of_new_pieces(std::span<const PieceLink> links, std::span<const int> source_before,
                                           std::span<const int> target_before, std::span<const int> source_now,
                                           std::span<const int> target_now) {
  std::vector<AlignmentLink> words;
  for (const PieceLink& link : links)
    words.push_back(
        {source_before[static_cast<std::size_t>(link.source)], target_before[static_cast<std::size_t>(link.target)]});
  return piece_links(std::move(words), source_now, target_now);
}

}  // namespace heed
