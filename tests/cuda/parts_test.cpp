#include "heed/ops/parts.h"

#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE_TEMPLATE("parts on a GPU: blocks, and rows that are gathered once, twice and never", T, float, double) {
  TestTensor<T> x = normal<T>({50, 37}, 1), dy = normal<T>({9, 37}, 2);
  const std::vector<std::int32_t> rows{3, 49, 3, 0, 7, 3, 49, 8, 12};
  check_kernels<T>({normal<T>({50, 37}, 3), normal<T>({50, 37}, 4), normal<T>({9, 37}, 5), normal<T>({50, 37}, 6)},
                   [&](auto& device, std::span<const Tensor<T>> to) {
                     copy_block<T>(device, x.values.data() + 5, 37, to[0].data() + 2, 37, 40, 30);
                     add_block<T>(device, x.values.data() + 5, 37, to[1].data() + 2, 37, 40, 30);
                     gather_rows_forward(device, x.view(), rows, to[2]);
                     gather_rows_backward(device, dy.view(), rows, to[3]);
                   });
}

TEST_CASE("parts on a GPU: no rows") {
  TestTensor<float> x = normal<float>({5, 3}, 1), none = normal<float>({0, 3}, 2);
  check_kernels<float>({normal<float>({5, 3}, 3)}, [&](auto& device, std::span<const Tensor<float>> to) {
    gather_rows_forward(device, x.view(), {}, none.view());
    gather_rows_backward(device, none.view(), {}, to[0]);
  });
}

}  // namespace
}  // namespace heed
