#pragma once

#include <cstdint>
#include <functional>

#include "heed/autograd/graph.h"

namespace heed {

/// A function that changes scores in place. `scores` [R, V], in the memory of the device, are the scores of R rows
/// (hypotheses); row 0 of `scores` belongs to row number `first` of all rows.
using ChangeScores = std::function<void(Tensor<float> scores, std::int64_t first)>;

/// Computes the k likeliest columns of softmax(hidden W^T + b) for each row on a GPU, as output_top_k() does on a CPU.
/// `change`, if not empty, is called with the scores of some rows after the other. At most `most` scores, or those of
/// one row, are in memory at a time. The results are in the memory of the host, which waits for the GPU once.
///
/// Shapes: hidden [R, D], weight [V, D], bias [V] or absent -> log-probabilities and ids [R, k].
void output_top_k_on_gpu(Graph<float>& graph, Tensor<float> hidden, Tensor<float> weight, Tensor<float> bias,
                         std::int64_t k, float* log_probabilities, std::int32_t* ids, const ChangeScores& change = {},
                         std::int64_t most = std::int64_t{1} << 25);

}  // namespace heed
