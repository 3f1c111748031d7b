#pragma once

#include <span>
#include <vector>

#include "heed/decode/decoder.h"
#include "heed/decode/tree_rule.h"

namespace heed {

/// Translates a batch of sources to linear trees by Decoder::translate(). `words` has the number of words of each
/// source; each tree of a source has the same number of words. Let n be the number of pieces of a source, `</s>`
/// included. A tree of the source has at most 8 n + 16 pieces, which is more than any tree of a treebank needs, and at
/// most options.max_output_length pieces; but both limits are raised to the number of words.
std::vector<std::vector<Hypothesis>> parse(Decoder& decoder, const PackedIds& source, std::span<const int> words,
                                           const TreePieces& pieces, SearchOptions options);

}  // namespace heed
