#include "heed/ops/attention.h"

#include <cmath>

#include "op_test.h"

using namespace heed;

namespace {

using Offsets = std::vector<std::int32_t>;

Variable<double> fused_self_attention(Graph<double>& graph, const Variable<double>& x, std::int64_t width,
                                      const Offsets& offsets, const AttentionOptions& options) {
  return attention<double>(graph, {x, 0}, {x, width}, {x, 2 * width}, width, {offsets}, {offsets}, options);
}

}  // namespace

TEST_CASE("attention: gradients of a fused self-attention, with and without the causal mask and dropout") {
  static const Offsets offsets{0, 3, 3, 4, 9};
  for (const int heads : {1, 2, 3})
    for (const bool causal : {false, true})
      for (const double dropout : {0.0, 0.4})
        require_gradients({{9, 18}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
          return fused_self_attention(graph, in[0], 6, offsets, {heads, causal, dropout});
        });
}

TEST_CASE("attention: gradients of a cross-attention, other columns around the slices, an empty source") {
  static const Offsets queries{0, 4, 5, 7}, keys{0, 2, 2, 7};
  require_gradients({{7, 9}, {7, 10}, {7, 8}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    return attention<double>(graph, {in[0], 1}, {in[1], 2}, {in[2], 0}, 8, {queries}, {keys}, {4, false, 0.3});
  });
}
