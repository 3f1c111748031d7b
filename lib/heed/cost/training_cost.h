#pragma once

#include <cstdint>
#include <vector>

#include "heed/base/threads.h"
#include "heed/cost/cost_part.h"
#include "heed/cost/transformer_work.h"
#include "heed/data/parallel_corpus.h"
#include "heed/optim/optimizer.h"
#include "heed/train/trainer_options.h"

namespace heed {

/// What training will take by a model of its cost: the operations and bytes that the config and the corpus ask for,
/// counted, times what one costs on this machine, measured on the library's own kernels at the model's sizes.
struct TrainingCost {
  std::int64_t target_tokens = 0;  ///< that were looked at
  double seconds = 0;              ///< for these, by the clock
  std::vector<CostPart> parts;

  double tokens_per_second() const { return static_cast<double>(target_tokens) / seconds; }
};

/// Throws as the ops do. `parameters` are read; `pool` is what will train. Takes part of a second.
TrainingCost training_cost(const Transformer<float>& model, ParameterValues<float>& parameters,
                           const OptimizerSettings& optimizer, const ParallelCorpus& corpus, const BatchOptions& batch,
                           Precision precision, ThreadPool& pool);

}  // namespace heed
