#pragma once

#include <string>
#include <vector>

#include "heed/base/threads.h"
#include "heed/data/examples.h"
#include "heed/dist/communicator.h"
#include "heed/model/model.h"
#include "heed/text/text_model.h"

namespace heed {

/// Returns greedy translations of the sources of all examples, in order, computed on all threads of `pool` and by all
/// ranks together. The translations are raw text, or first-stage tokens (before detokenising) when `tokens` is true.
std::vector<std::string> translate_examples(const Model<float>& model, ParameterValues<float>& parameters,
                                            Precision precision, const Examples& examples, const TextModel& target,
                                            bool tokens, ThreadPool& pool, Communicator& ranks);

}  // namespace heed
