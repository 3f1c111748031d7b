#include "heed/ops/softmax.h"

#include <limits>

#include "heed/ops/sequence_mean.h"
#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE_TEMPLATE("softmax on a GPU: rows of any width", T, float, double) {
  for (const std::int64_t columns : {1, 31, 32, 33, 100, 500}) {
    CAPTURE(columns);
    const Shape shape{5, columns};
    TestTensor<T> x = normal<T>(shape, 1), dy = normal<T>(shape, 2);
    for (T& value : x.values) value *= 10;
    const T never = -std::numeric_limits<T>::infinity();
    for (std::int64_t i = 0; i < columns; ++i) x.view().row(3)[i] = i == columns / 2 ? T(1) : never;
    TestTensor<T> hidden = x;
    for (std::int64_t i = 0; i < columns; ++i) hidden.view().row(4)[i] = never;
    TestTensor<T> y = normal<T>(shape, 3);
    check_kernels<T>({normal<T>(shape, 4), normal<T>(shape, 5), normal<T>(shape, 6), normal<T>(shape, 7)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       softmax_forward(device, hidden.view(), to[0]);
                       softmax_backward(device, y.view(), dy.view(), to[1]);
                       log_softmax_forward(device, x.view(), to[2]);
                       log_softmax_backward(device, y.view(), dy.view(), to[3]);
                     });
  }
}

TEST_CASE_TEMPLATE("mean of a sequence on a GPU", T, float, double) {
  const std::vector<std::int32_t> offsets{0, 3, 4, 40};
  TestTensor<T> x = normal<T>({40, 33}, 1), dy = normal<T>({3, 33}, 2);
  check_kernels<T>({normal<T>({3, 33}, 3), normal<T>({40, 33}, 4)}, [&](auto& device, std::span<const Tensor<T>> to) {
    sequence_mean_forward(device, x.view(), {offsets}, to[0]);
    sequence_mean_backward(device, dy.view(), {offsets}, to[1]);
  });
}

}  // namespace
}  // namespace heed
