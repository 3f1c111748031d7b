#pragma once

#include <span>
#include <vector>

#include "heed/decode/decoder.h"
#include "heed/decode/tree_rule.h"

namespace heed {

/// Translates a batch of sources to linear trees, as Decoder::translate() does. `words` has the number of words of each
/// source, which is the number of words of its trees. A tree has at most options.max_output_length pieces, unless it
/// has more words, and at most a number that grows with its source, which no tree of a treebank needs.
std::vector<std::vector<Hypothesis>> parse(Decoder& decoder, const PackedIds& source, std::span<const int> words,
                                           const TreePieces& pieces, SearchOptions options);

}  // namespace heed
