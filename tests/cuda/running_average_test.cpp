#include "heed/ops/running_average.h"

#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE_TEMPLATE("running averages on a GPU: whole sequences", T, float, double) {
  const std::vector<std::int32_t> offsets{0, 1, 1, 41, 43};
  constexpr std::int64_t kRows = 43;
  for (const std::int64_t n : {1, 31, 32, 33, 100}) {
    CAPTURE(n);
    TestTensor<T> x = normal<T>({kRows, n}, 1), gates = normal<T>({kRows, 2 * n}, 2), dy = normal<T>({kRows, n}, 3);
    TestTensor<T> states = normal<T>({kRows, n}, 4);
    check_kernels<T>(
        {normal<T>({kRows, n}, 5), normal<T>({kRows, n}, 6), normal<T>({kRows, n}, 7), normal<T>({kRows, n}, 8),
         normal<T>({kRows, 2 * n}, 9)},
        [&](auto& device, std::span<const Tensor<T>> to) {
          const auto steps_over = [&](const Tensor<T>& of) {
            std::vector<StateStep<T>> steps;
            for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
              for (std::int32_t row = offsets[s]; row < offsets[s + 1]; ++row)
                steps.push_back({row > offsets[s] ? of.row(row - 1) : nullptr, of.row(row), row - offsets[s] + 1});
            return steps;
          };
          running_mean_step<T>(device, x.view(), steps_over(to[0]), to[0]);  // the states are the result
          simple_recurrence_step<T>(device, gates.view(), steps_over(to[1]), to[2]);
          running_mean_backward(device, {offsets}, dy.view(), to[3]);
          simple_recurrence_backward(device, {offsets}, gates.view(), states.view(), dy.view(), to[4]);
        });
  }
}

TEST_CASE_TEMPLATE("running averages on a GPU: one position of each hypothesis", T, float, double) {
  constexpr std::int64_t kRows = 5, kN = 37;
  TestTensor<T> gates = normal<T>({kRows, 2 * kN}, 1), before = normal<T>({kRows, kN}, 2);
  check_kernels<T>(
      {normal<T>({kRows, kN}, 3), normal<T>({kRows, kN}, 4), normal<T>({kRows, kN}, 5), normal<T>({kRows, kN}, 6)},
      [&](auto& device, std::span<const Tensor<T>> to) {
        // Hypotheses may follow the same one; one is at its first position.
        const auto steps_to = [&](const Tensor<T>& of) {
          std::vector<StateStep<T>> steps;
          for (const std::int32_t from : {3, 0, 3, -1, 4})
            steps.push_back(
                {from < 0 ? nullptr : before.view().row(from), of.row(std::ssize(steps)), from < 0 ? 1 : from + 2});
          return steps;
        };
        running_mean_step<T>(device, to[0], steps_to(to[1]), to[0]);  // overwrites x
        simple_recurrence_step<T>(device, gates.view(), steps_to(to[2]), to[3]);
      });
}

TEST_CASE("running averages on a GPU: nothing") {
  TestTensor<float> none = normal<float>({0, 3}, 1), gates = normal<float>({0, 6}, 2);
  check_kernels<float>({normal<float>({1}, 3)}, [&](auto& device, std::span<const Tensor<float>>) {
    running_mean_step<float>(device, none.view(), {}, none.view());
    simple_recurrence_step<float>(device, gates.view(), {}, none.view());
    for (const std::vector<std::int32_t>& offsets : {std::vector<std::int32_t>{}, {0}, {0, 0}}) {
      running_mean_backward(device, {offsets}, none.view(), none.view());
      simple_recurrence_backward(device, {offsets}, gates.view(), none.view(), none.view(), gates.view());
    }
  });
}

}  // namespace
}  // namespace heed
