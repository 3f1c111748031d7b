#pragma once

#include <string>
#include <vector>

#include "heed/base/signals.h"
#include "heed/base/threads.h"
#include "heed/data/examples.h"
#include "heed/decode/tree_rule.h"
#include "heed/dist/communicator.h"
#include "heed/model/model.h"
#include "heed/text/text_model.h"

namespace heed {

/// The words of the examples whose targets are trees.
struct TreeSentences {
  TreePieces pieces;
  std::vector<std::vector<std::string_view>> words;
};

/// Returns greedy translations of the sources of all examples, in order, computed on all threads of `pool` and by all
/// ranks together. The translations are raw text, or first-stage tokens (before detokenising) when `tokens` is true.
/// With `trees`, which may be null, they are trees over these words. If `interrupts` has caught a signal on a rank,
/// translations of this rank may be missing.
std::vector<std::string> translate_examples(const Model<float>& model, ParameterValues<float>& parameters,
                                            Precision precision, const Examples& examples, const TextModel& target,
                                            bool tokens, const TreeSentences* trees, ThreadPool& pool,
                                            Communicator& ranks, const InterruptGuard& interrupts);

}  // namespace heed
