#include "heed/decode/parse.h"

#include <algorithm>

namespace heed {
namespace {

/// Returns the greatest number of pieces that a tree gets whose source has this number of pieces: more than any tree of
/// a treebank needs.
int longest_tree(int source_pieces) {
  return 8 * source_pieces + 16;
}

}  // namespace

std::vector<std::vector<Hypothesis>> parse(Decoder& decoder, const PackedIds& source, std::span<const int> words,
                                           const TreePieces& pieces, SearchOptions options) {
  std::vector<TreeRule::Shape> shapes;
  for (int s = 0; s < source.sequences(); ++s) {
    const int count = words[static_cast<std::size_t>(s)];
    const int longest = std::min(longest_tree(source.packed().length(s)), options.max_output_length);
    shapes.push_back({count, std::max(count, longest)});
  }
  // The rule limits the length. The search may know that no tree is longer than the longest one with `</s>`.
  options = without_length_limit(options);
  options.max_output_length = 1 + std::ranges::max(shapes, {}, &TreeRule::Shape::longest).longest;
  const TreeRule rule(pieces, std::move(shapes));
  return decoder.translate(source, options, &rule);
}

}  // namespace heed
