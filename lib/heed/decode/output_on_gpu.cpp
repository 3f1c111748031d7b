#include "heed/decode/output_on_gpu.h"

#include <algorithm>
#include <cstring>

#include "heed/ops/linear.h"
#include "heed/ops/top_k.h"

namespace heed {

void output_top_k_on_gpu(Graph<float>& graph, Tensor<float> hidden, Tensor<float> weight, Tensor<float> bias,
                         std::int64_t k, float* log_probabilities, std::int32_t* ids, const ChangeScores& change,
                         std::int64_t most) {
  const std::int64_t rows = hidden.rows(), at_once = std::max<std::int64_t>(1, most / weight.rows());
  // The log-probabilities and then the ids, so that one copy brings both to the host.
  const Tensor<float> results = graph.arena().tensor<float>({2, rows, k});
  auto* const found_ids = reinterpret_cast<std::int32_t*>(results.row_block(rows, rows).data());
  for (std::int64_t begin = 0; begin < rows; begin += at_once) {
    const InferenceScope scope(graph);
    const Variable<float> some = graph.input(hidden.row_block(begin, std::min(at_once, rows - begin)));
    const Variable<float> scores = linear(graph, some, graph.input(weight), graph.input(bias));
    if (change) change(scores.value, begin);
    graph.run(
        [&](auto& device) { log_softmax_top_k(device, scores.value, k, results.row(begin), found_ids + begin * k); });
  }
  const Tensor<float> found = graph.device().download(results);
  std::copy_n(found.data(), rows * k, log_probabilities);
  std::memcpy(ids, found.data() + rows * k, static_cast<std::size_t>(rows * k) * sizeof(std::int32_t));
}

}  // namespace heed
