#include "heed/ops/gated_sum.h"
#include "heed/ops/gated_unit.h"
#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE_TEMPLATE("gated linear units on a GPU", T, float, double) {
  for (const Activation activation : {Activation::gelu, Activation::swish})
    for (const std::int64_t columns : {1, 31, 32, 33, 200}) {
      CAPTURE(columns);
      for (const std::int64_t rows : {0, 1, 6}) {
        CAPTURE(rows);
        TestTensor<T> x = normal<T>({rows, 2 * columns}, 1), dy = normal<T>({rows, columns}, 2);
        for (T& value : x.values) value *= 3;
        check_kernels<T>(
            {normal<T>({rows, columns}, 3), normal<T>({rows, 2 * columns}, 4), normal<T>({rows, 2 * columns}, 5)},
            [&](auto& device, std::span<const Tensor<T>> to) {
              gated_unit_forward(device, x.view(), activation, MaybeRounded<T>{to[0]});
              gated_unit_backward(device, x.view(), activation, {dy.view()}, to[1], false);
              gated_unit_backward(device, x.view(), activation, {dy.view()}, to[2], true);
            });
      }
    }
}

TEST_CASE("gated linear units on a GPU: results and gradients that are stored as bfloat16") {
  const Shape shape{5, 37};
  TestTensor<float> x = normal<float>({5, 74}, 1), y = normal<float>(shape, 2);
  TestTensor<Bfloat16> rounded{shape, std::vector<Bfloat16>(y.values.size())};
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  gated_unit_forward(device, x.view(), Activation::swish, MaybeRounded<float>{y.view()});
  gated_unit_forward(device, x.view(), Activation::swish, MaybeRounded<float>{{}, rounded.view()});
  for (std::size_t i = 0; i < y.values.size(); ++i) CHECK(rounded.values[i] == to_bfloat16(y.values[i]));
  TestTensor<float> dy = in_full(rounded), dx = normal<float>(x.shape, 3), dx_of_rounded = dx;
  gated_unit_backward<float>(device, x.view(), Activation::swish, {dy.view()}, dx.view(), true);
  gated_unit_backward<float>(device, x.view(), Activation::swish, {{}, rounded.view()}, dx_of_rounded.view(), true);
  CHECK(dx_of_rounded.values == dx.values);
}

TEST_CASE_TEMPLATE("gated sums on a GPU", T, float, double) {
  for (const std::int64_t size : {0, 1, 31, 32, 33, 1000}) {
    CAPTURE(size);
    const Shape shape{size};
    TestTensor<T> a = normal<T>(shape, 1), x = normal<T>(shape, 2), b = normal<T>(shape, 3), z = normal<T>(shape, 4);
    for (T& value : a.values) value *= 30;
    check_kernels<T>(
        {normal<T>(shape, 5), normal<T>(shape, 6), normal<T>(shape, 7), normal<T>(shape, 8), normal<T>(shape, 9)},
        [&](auto& device, std::span<const Tensor<T>> to) {
          const Tensor<T> none;
          gated_sum_forward(device, a.view(), x.view(), b.view(), z.view(), to[0]);
          gated_sum_backward(device, b.view(), x.view(), z.view(), to[1], to[2]);
          gated_sum_backward(device, a.view(), x.view(), z.view(), to[3], none);
          gated_sum_backward(device, a.view(), x.view(), z.view(), none, to[4]);
        });
  }
}

}  // namespace
}  // namespace heed
