#pragma once

#include <string>
#include <vector>

#include "heed/base/threads.h"
#include "heed/data/parallel_corpus.h"
#include "heed/model/model.h"
#include "heed/text/text_model.h"

namespace heed {

/// Returns greedy translations of all source sentences of `corpus`, in order, computed on all threads of `pool`. The
/// translations are raw text, or first-stage tokens (before detokenising) when `tokens` is true.
std::vector<std::string> translate_corpus(const Model<float>& model, ParameterValues<float>& parameters,
                                          Precision precision, const ParallelCorpus& corpus, const TextModel& target,
                                          bool tokens, ThreadPool& pool);

}  // namespace heed
