#include "heed/ops/arithmetic.h"

#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE_TEMPLATE("arithmetic on a GPU: as on the CPU", T, float, double) {
  for (const std::int64_t n : {1, 31, 256, 1000, 70001}) {
    CAPTURE(n);
    TestTensor<T> a = normal<T>({n}, 1), b = normal<T>({n}, 2), factor = normal<T>({1}, 3);
    for (const T beta : {T(0), T(1)}) {
      CAPTURE(beta);
      const std::vector<TestTensor<T>> before{normal<T>({n}, 4), normal<T>({n}, 5), normal<T>({n}, 6),
                                              normal<T>({1}, 7), normal<T>({n}, 8)};
      check_kernels<T>(before, [&](auto& device, std::span<const Tensor<T>> to) {
        multiply_into(device, a.view(), b.view(), beta, to[0]);
        scale_into(device, a.view(), T(1.5), beta, to[1]);
        scale_by_element<T>(device, a.view(), factor.values.data(), beta, to[2]);
        sum_into(device, a.view(), beta, to[3].data());
        sum_backward<T>(device, factor.values.data(), to[4]);
      });
    }
  }
}

TEST_CASE("arithmetic on a GPU: where beta is 0, the result is not read") {
  TestTensor<float> a = normal<float>({300}, 1);
  TestTensor<float> nan{{300}, std::vector<float>(300, NAN)}, sum{{1}, {NAN}};
  check_kernels<float>({nan, nan, sum}, [&](auto& device, std::span<const Tensor<float>> to) {
    multiply_into(device, a.view(), a.view(), 0.0F, to[0]);
    scale_into(device, a.view(), 2.0F, 0.0F, to[1]);
    sum_into(device, a.view(), 0, to[2].data());
  });
}

}  // namespace
}  // namespace heed
