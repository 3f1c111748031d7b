#include "heed/ops/position_bias.h"

#include "heed/ops/window_bias.h"
#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE_TEMPLATE("biases of positions on a GPU: ALiBi and T5, causal and not", T, float, double) {
  for (const std::int64_t longest : {1, 2, 33, 150})
    for (const std::int64_t heads : {1, 3})
      for (const bool causal : {false, true}) {
        CAPTURE(longest);
        CAPTURE(heads);
        CAPTURE(causal);
        const Shape shape{heads, position_bias_columns(longest, causal)};
        TestTensor<T> table = normal<T>({8, heads}, 1), dbias = normal<T>(shape, 2);
        check_kernels<T>({normal<T>(shape, 3), normal<T>(shape, 4), normal<T>(table.shape, 5)},
                         [&](auto& device, std::span<const Tensor<T>> to) {
                           alibi_forward(device, longest, causal, to[0]);
                           t5_forward(device, table.view(), longest, causal, to[1]);
                           t5_backward(device, dbias.view(), longest, causal, to[2]);
                         });
      }
}

TEST_CASE_TEMPLATE("biases of windows on a GPU: windows of any shape", T, float, double) {
  const auto check = [](std::int64_t window, const std::vector<WindowShape>& shapes) {
    CAPTURE(window);
    constexpr std::int64_t kHeads = 2;
    std::vector<WindowMatrix> matrices;
    std::int64_t column = 0;
    for (const WindowShape& shape : shapes) {
      matrices.push_back({column, window_matrix_stride(shape)});
      column += shape.tokens() * matrices.back().stride;
    }
    const Shape bias{kHeads, window_bias_columns(shapes)};
    TestTensor<T> table = normal<T>({(2 * window - 1) * (2 * window - 1), kHeads}, 1), dbias = normal<T>(bias, 2);
    check_kernels<T>({normal<T>(bias, 3), normal<T>(table.shape, 4)}, [&](auto& device, std::span<const Tensor<T>> to) {
      window_bias_forward<T>(device, table.view(), window, shapes, matrices.data(), to[0]);
      window_bias_backward<T>(device, dbias.view(), window, shapes, matrices.data(), to[1]);
    });
  };
  check(1, {{1, 1}});
  check(4, {{4, 4}, {4, 1}, {2, 4}, {3, 2}});
  check(7, {{7, 7}, {1, 7}, {7, 5}});
}

}  // namespace
}  // namespace heed
