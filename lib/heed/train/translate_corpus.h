#pragma once

#include <string>
#include <vector>

#include "heed/base/threads.h"
#include "heed/data/parallel_corpus.h"
#include "heed/model/transformer.h"
#include "heed/text/text_model.h"

namespace heed {

/// Greedy translations of all source sentences of a corpus, in order, on all threads: as raw text, or as first-stage
/// tokens where `tokens`.
std::vector<std::string> translate_corpus(const Transformer<float>& model, ParameterValues<float>& parameters,
                                          Precision precision, const ParallelCorpus& corpus, const TextModel& target,
                                          bool tokens, ThreadPool& pool);

}  // namespace heed
