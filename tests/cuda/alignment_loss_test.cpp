#include "heed/ops/alignment_loss.h"

#include "heed/ops/attention.h"
#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE_TEMPLATE("alignment loss on a GPU: few links and many, a link twice, none", T, float, double) {
  const std::vector<std::int32_t> queries{0, 1, 1, 31, 34}, keys{0, 1, 5, 22, 24};
  std::vector<AttentionLink> many;  // some of them three times, so that an order of sums would show in the bits
  for (std::int32_t i = 0; i < 30; ++i)
    for (std::int32_t j = i % 2; j < 17; j += 2)
      for (std::int32_t k = 0; k < (i < 5 ? 3 : 1); ++k)
        many.push_back({2, i, 16 - j, 1 / static_cast<float>(1 + j + 5 * k)});
  const std::vector<std::vector<AttentionLink>> cases{
      {}, {{0, 0, 0, 1.0F}}, {{0, 0, 0, 1.0F}, {3, 2, 1, 0.25F}, {3, 0, 0, 1.0F}, {3, 2, 1, 0.75F}}, many};
  for (const int heads : {1, 3})
    for (const auto& links : cases) {
      CAPTURE(heads);
      CAPTURE(links.size());
      TestTensor<T> weights = normal<T>({attention_weights_size({queries}, {keys}, heads) + kAttentionSlack}, 1);
      for (std::size_t i = 0; i < weights.values.size(); ++i)
        weights.values[i] = i % 5 == 0 ? T(0) : std::min(std::abs(weights.values[i]), T(1));
      TestTensor<T> dloss = normal<T>({1}, 2);
      dloss.values[0] *= T(1e-3);  // a weight of 0 has a large gradient
      check_kernels<T>({normal<T>({2}, 3), normal<T>(weights.shape, 4), normal<T>({2}, 5)},
                       [&](auto& device, std::span<const Tensor<T>> to) {
                         AlignmentSums sums;
                         for (AlignmentSums* const wanted : {static_cast<AlignmentSums*>(nullptr), &sums})
                           alignment_loss_forward(device, weights.view(), heads, {queries}, {keys}, links, 0.3,
                                                  to[0].data() + (wanted ? 1 : 0), wanted);
                         to[2][0] = static_cast<T>(sums.loss);
                         to[2][1] = static_cast<T>(sums.queries);
                         alignment_loss_backward(device, weights.view(), heads, {queries}, {keys}, links, 0.3,
                                                 static_cast<const T*>(dloss.values.data()), to[1]);
                       });
    }
}

}  // namespace
}  // namespace heed
