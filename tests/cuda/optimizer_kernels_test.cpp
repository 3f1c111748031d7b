#include "heed/ops/optimizer_kernels.h"

#include <limits>

#include "heed/base/error.h"
#include "kernel_check.h"

namespace heed {
namespace {

/// Calls kernel(context) for a GPU, and kernel() for a CPU: the functions for a CPU have no context.
template <class Context, class Kernel>
void call(Context& context, const Kernel& kernel) {
  if constexpr (std::is_same_v<Context, CudaContext>)
    kernel(context);
  else
    kernel();
}

TEST_CASE_TEMPLATE("optimisers on a GPU: Adam, AdamW and gradient descent", T, float, double) {
  for (const std::int64_t n : {0, 1, 255, 257, 3000}) {
    CAPTURE(n);
    TestTensor<T> g = normal<T>({n}, 1), second = normal<T>({n}, 2);
    for (T& value : second.values) value *= value;
    const std::span<const T> gradient(g.values);
    const AdamUpdate adam{.learning_rate = 0.1, .weight_decay = 0.2, .step = 3, .gradient_scale = 0.7};
    AdamUpdate adam_w = adam;
    adam_w.decoupled = true;
    const SgdUpdate sgd{.learning_rate = 0.1, .weight_decay = 0.2, .gradient_scale = 0.7};
    SgdUpdate momentum = sgd;
    momentum.momentum = 0.9;
    check_kernels<T>({normal<T>({n}, 3), normal<T>({n}, 4), second, normal<T>({n}, 5), normal<T>({n}, 6), second,
                      normal<T>({n}, 7), normal<T>({n}, 8), normal<T>({n}, 9)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       call(device, [&](auto&... on) {
                         adam_update<T>(on..., to[0].span(), gradient, to[1].span(), to[2].span(), adam);
                         adam_update<T>(on..., to[3].span(), gradient, to[4].span(), to[5].span(), adam_w);
                         sgd_update<T>(on..., to[6].span(), gradient, to[7].span(), momentum);
                         sgd_update<T>(on..., to[8].span(), gradient, {}, sgd);
                       });
                     });
  }
}

TEST_CASE_TEMPLATE("optimisers on a GPU: an update whose factor the GPU knows, and one that is given up", T, float,
                   double) {
  const std::int64_t n = 600;
  TestTensor<T> g = normal<T>({n}, 1), second = normal<T>({n}, 2), x = normal<T>({n}, 10),
                sums = normal<T>({n + 1}, 11);
  for (T& value : second.values) value *= value;
  sums.values.back() = 7;
  const std::span<const T> gradient(g.values);
  for (const bool applied : {true, false}) {
    CAPTURE(applied);
    const UpdateDecision decision{.gradient_scale = 0.7, .applied = applied};
    check_kernels<T>({normal<T>({n}, 3), normal<T>({n}, 4), second, normal<T>({n}, 7), normal<T>({n}, 8),
                      normal<T>({n}, 9), normal<T>({n}, 12)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       AdamUpdate adam{.learning_rate = 0.1, .step = 3, .gradient_scale = 0.7};
                       SgdUpdate sgd{.learning_rate = 0.1, .momentum = 0.9, .gradient_scale = 0.7};
                       if constexpr (std::is_same_v<decltype(device), CudaContext&>) {
                         adam.gradient_scale = sgd.gradient_scale = 3;  // which the decision replaces
                         adam.decision = sgd.decision = &decision;
                         adam_update<T>(device, to[0].span(), gradient, to[1].span(), to[2].span(), adam);
                         sgd_update<T>(device, to[3].span(), gradient, to[4].span(), sgd);
                         move_average<T>(device, to[5].span(), x.values, 0.9, &decision);
                         move_to_means<T>(device, to[6].span(), sums.values, 0.1, &decision);
                       } else if (applied) {
                         adam_update<T>(to[0].span(), gradient, to[1].span(), to[2].span(), adam);
                         sgd_update<T>(to[3].span(), gradient, to[4].span(), sgd);
                         move_average<T>(to[5].span(), x.values, 0.9);
                         move_to_means<T>(to[6].span(), sums.values, 0.1);
                       }
                     });
  }
}

TEST_CASE("optimisers on a GPU: which updates are applied, and their factors") {
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  const std::uint8_t yes = 1, no = 0;
  const auto decide = [&](double squared_norm, double loss, const std::uint8_t* finite, double clip_norm,
                          UpdateDecision before = {}) {
    const auto loss_there = static_cast<float>(loss);
    decide_update(device, &squared_norm, &loss_there, finite, clip_norm, &before);
    return before;
  };
  CHECK(decide(16, 3, nullptr, 0).applied == 1);
  CHECK(decide(16, 3, nullptr, 0).gradient_norm == 4);
  CHECK(decide(16, 3, nullptr, 0).gradient_scale == 1);
  CHECK(decide(16, 3, &yes, 1).gradient_scale == 0.25);
  CHECK(decide(16, 3, &yes, 5).gradient_scale == 1);
  CHECK(decide(16, 3, &yes, 5).applied == 1);
  CHECK(decide(16, 3, &yes, 5).given_up == 0);
  for (const UpdateDecision& bad :
       {decide(kInfinity, 3, nullptr, 1), decide(kNan, 3, nullptr, 1), decide(16, kInfinity, nullptr, 1),
        decide(16, -kInfinity, nullptr, 1), decide(16, kNan, nullptr, 1), decide(16, 3, &no, 1)}) {
    CHECK(bad.applied == 0);
    CHECK(bad.given_up == 1);
    CHECK(decide(16, 3, &yes, 1, bad).applied == 0);  // and so are all after it
  }
}

TEST_CASE_TEMPLATE("optimisers on a GPU: sums, factors and averages of arrays", T, float, double) {
  for (const std::int64_t n : {0, 1, 256, 257, 3000}) {
    CAPTURE(n);
    TestTensor<T> x = normal<T>({n}, 1);
    check_kernels<T>({normal<T>({n}, 2), normal<T>({n}, 3), normal<T>({n}, 4)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       call(device, [&](auto&... on) {
                         add_to<T>(on..., to[0].span(), x.values);
                         scale_by<T>(on..., to[1].span(), 0.3);
                         move_average<T>(on..., to[2].span(), x.values, 0.9);
                       });
                     });
  }
}

TEST_CASE_TEMPLATE("optimisers on a GPU: sum of squares", T, float, double) {
  for (const std::int64_t n : {0, 1, 255, 257, 1500, sizeof(T) == 4 ? 66000 : 0}) {
    CAPTURE(n);
    TestTensor<T> x = normal<T>({n}, 1);
    check_kernels<double>({normal<double>({1}, 2)}, [&](auto& device, std::span<const Tensor<double>> to) {
      if constexpr (std::is_same_v<decltype(device), CudaContext&>)
        squared_norm<T>(device, x.values, to[0].data());
      else
        to[0][0] = squared_norm<T>(x.values);
    });
  }
}

TEST_CASE_TEMPLATE("optimisers on a GPU: an element that is not finite, at any place", T, float, double) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (const std::int64_t n : {0, 1, 600})
    for (const T value :
         {T(3), std::numeric_limits<T>::max(), kInfinity, -kInfinity, std::numeric_limits<T>::quiet_NaN()})
      for (const std::int64_t place : {std::int64_t{0}, n / 3, n - 1}) {
        CAPTURE(n);
        CAPTURE(value);
        CAPTURE(place);
        TestTensor<T> x = normal<T>({n}, 1);
        if (n > 0) x.values[static_cast<std::size_t>(place)] = value;
        check_kernels<std::uint8_t>({{{1}, {7}}}, [&](auto& device, std::span<const Tensor<std::uint8_t>> to) {
          if constexpr (std::is_same_v<decltype(device), CudaContext&>)
            all_finite<T>(device, x.values, to[0].data());
          else
            to[0][0] = all_finite<T>(x.values);
        });
      }
}

TEST_CASE("optimisers on a GPU: arrays of different sizes") {
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  std::vector<float> a(3), b(4);
  CHECK_THROWS_WITH_AS(add_to<float>(device, a, b), "internal: add_to: arrays of 3 and 4 elements", Error);
  CHECK_THROWS_AS(adam_update<float>(device, a, a, a, b, {}), Error);
  CHECK_THROWS_AS(sgd_update<float>(device, a, a, b, {.momentum = 0.9}), Error);
  CHECK_THROWS_AS(sgd_update<float>(device, a, b, {}, {}), Error);
  CHECK_THROWS_AS(move_average<float>(device, a, b, 0.5), Error);
}

}  // namespace
}  // namespace heed
