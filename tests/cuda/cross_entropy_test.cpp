#include "heed/ops/cross_entropy.h"

#include "kernel_check.h"

namespace heed {
namespace {

/// Writes sums to a tensor of four numbers.
template <class T>
void write(const CrossEntropySums& sums, Tensor<T> to) {
  to[0] = static_cast<T>(sums.loss);
  to[1] = static_cast<T>(sums.negative_log_likelihood);
  to[2] = static_cast<T>(sums.tokens);
  to[3] = static_cast<T>(sums.correct);
}

TEST_CASE_TEMPLATE("cross-entropy on a GPU: loss, sums and gradients", T, float, double) {
  for (const std::int64_t vocabulary : {3, 33, 300, 1030}) {
    CAPTURE(vocabulary);
    constexpr std::int64_t kRows = 21, kWidth = 7;
    TestTensor<T> hidden = normal<T>({kRows, kWidth}, 1), weight = normal<T>({vocabulary, kWidth}, 2),
                  bias = normal<T>({vocabulary}, 3), again = normal<T>({kRows, kWidth}, 4),
                  other = normal<T>({vocabulary, kWidth}, 11);
    std::vector<std::int32_t> targets, second;
    std::vector<float> shares;
    for (std::int32_t i = 0; i < kRows; ++i) {
      targets.push_back(i * 5 % static_cast<std::int32_t>(vocabulary));
      second.push_back(i % 3 == 0 ? targets.back() : i * 7 % static_cast<std::int32_t>(vocabulary));
      shares.push_back(i % 4 == 0 ? 0 : 0.25F);
    }
    const std::vector<TestTensor<T>> before{normal<T>({kRows, kWidth}, 5),
                                            normal<T>({vocabulary, kWidth}, 6),
                                            normal<T>({vocabulary}, 7),
                                            normal<T>({1}, 8),
                                            normal<T>({4}, 9),
                                            normal<T>({kRows, kWidth}, 10)};
    for (const bool mixed : {false, true})
      for (const bool has_bias : {false, true}) {
        CAPTURE(mixed);
        CAPTURE(has_bias);
        CrossEntropyOptions options{.label_smoothing = 0.1, .scale = 0.3};
        if (mixed) options.second_targets = second;
        if (mixed) options.second_shares = shares;
        const Tensor<T> b = has_bias ? bias.view() : Tensor<T>();
        check_kernels<T>(before, [&](auto& device, std::span<const Tensor<T>> to) {
          CrossEntropySums sums;
          cross_entropy_forward<T>(device, hidden.view(), weight.view(), b, targets, options, {}, to[0], to[1],
                                   has_bias ? to[2] : Tensor<T>(), {to[3].data(), &sums});
          write(sums, to[4]);
        });
        const std::vector<TeacherStates<T>> teachers{{again.view(), other.view(), b},
                                                     {hidden.view(), other.view(), {}}};
        check_kernels<T>(before, [&](auto& device, std::span<const Tensor<T>> to) {
          CrossEntropySums sums;
          cross_entropy_forward<T>(device, hidden.view(), weight.view(), b, targets, options, {teachers, 0.75}, to[0],
                                   to[1], has_bias ? to[2] : Tensor<T>(), {to[3].data(), &sums});
          write(sums, to[4]);
        });
        if (mixed) continue;
        check_kernels<T>(before, [&](auto& device, std::span<const Tensor<T>> to) {
          CrossEntropySums sums;
          consistent_cross_entropy_forward<T>(device, {hidden.view(), to[0]}, {again.view(), to[5]}, weight.view(), b,
                                              targets, options, 2, to[1], has_bias ? to[2] : Tensor<T>(),
                                              {to[3].data(), &sums});
          write(sums, to[4]);
        });
      }
    // Without gradients, and without anybody who wants the sums.
    check_kernels<T>({normal<T>({1}, 8)}, [&](auto& device, std::span<const Tensor<T>> to) {
      cross_entropy_forward<T>(device, hidden.view(), weight.view(), bias.view(), targets, {}, {}, {}, {}, {},
                               {to[0].data(), nullptr});
    });
    check_kernels<T>({normal<T>({kRows, vocabulary}, 8), normal<T>({kRows}, 9)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       projection_log_probabilities(device, hidden.view(), weight.view(), bias.view(), to[0]);
                       token_log_probabilities<T>(device, hidden.view(), weight.view(), {}, targets, to[1].data());
                     });
  }
}

TEST_CASE("cross-entropy on a GPU: with bfloat16 products, nearly the same gradients as in full precision") {
  constexpr std::int64_t kRows = 40, kWidth = 16, kVocabulary = 130;
  TestTensor<float> hidden = normal<float>({kRows, kWidth}, 1), again = normal<float>({kRows, kWidth}, 2);
  TestTensor<float> weight = normal<float>({kVocabulary, kWidth}, 3), bias = normal<float>({kVocabulary}, 4);
  std::vector<std::int32_t> targets;
  for (std::int32_t i = 0; i < kRows; ++i) targets.push_back(i * 3);
  const CrossEntropyOptions options{.label_smoothing = 0.1, .scale = 0.3};
  for (const bool consistent : {false, true}) {
    CAPTURE(consistent);
    // The gradients of the hidden states of both passes, of the weight and of the bias, and the loss.
    const auto compute = [&](Precision precision) {
      std::vector<TestTensor<float>> to{hidden, again, weight, bias, {{1}, {0}}};
      for (TestTensor<float>& each : to) std::fill(each.values.begin(), each.values.end(), 0.0F);
      Arena arena, host_arena;
      CudaContext device{arena, host_arena};
      device.precision = precision;
      const LossResult<float> result{to[4].values.data(), nullptr};
      if (consistent)
        consistent_cross_entropy_forward<float>(device, {hidden.view(), to[0].view()}, {again.view(), to[1].view()},
                                                weight.view(), bias.view(), targets, options, 2, to[2].view(),
                                                to[3].view(), result);
      else
        cross_entropy_forward<float>(device, hidden.view(), weight.view(), bias.view(), targets, options, {},
                                     to[0].view(), to[2].view(), to[3].view(), result);
      return to;
    };
    const auto exact = compute(Precision::float32), found = compute(Precision::bfloat16);
    for (std::size_t k = 0; k < exact.size(); ++k) {
      CAPTURE(k);
      double difference = 0, size = 0;
      for (std::size_t i = 0; i < exact[k].values.size(); ++i) {
        difference += std::pow(static_cast<double>(found[k].values[i]) - static_cast<double>(exact[k].values[i]), 2);
        size += std::pow(static_cast<double>(exact[k].values[i]), 2);
      }
      if (!consistent && k == 1) continue;
      CHECK(size > 0);
      CHECK(difference > 0);
      CHECK(std::sqrt(difference / size) < 0.02);
    }
  }
}

TEST_CASE_TEMPLATE("cross-entropy on a GPU: large vocabularies, whose rows are held in registers or read again", T,
                   float, double) {
  for (const std::int64_t vocabulary : {4100, 8193, 33001}) {
    CAPTURE(vocabulary);
    constexpr std::int64_t kRows = 3, kWidth = 2;
    TestTensor<T> hidden = normal<T>({kRows, kWidth}, 1), weight = normal<T>({vocabulary, kWidth}, 2);
    const std::vector<std::int32_t> targets{0, static_cast<std::int32_t>(vocabulary) - 1, 4098};
    check_kernels<T>({normal<T>({kRows, kWidth}, 3), normal<T>({vocabulary, kWidth}, 4), normal<T>({4}, 5)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       CrossEntropySums sums;
                       cross_entropy_forward<T>(device, hidden.view(), weight.view(), {}, targets,
                                                {.label_smoothing = 0.1}, {}, to[0], to[1], {}, {nullptr, &sums});
                       write(sums, to[2]);
                     });
  }
}

TEST_CASE("cross-entropy on a GPU: of several likeliest words the one with the lowest id is the prediction") {
  // The logits of each row are 1, 2, 2, ..., 2, 1.
  constexpr std::int64_t kVocabulary = 100;
  TestTensor<float> hidden{{4, 1}, std::vector<float>(4, 1)}, weight{{kVocabulary, 1}, std::vector<float>(100, 2)};
  weight.values[0] = weight.values[99] = 1;
  const std::vector<std::int32_t> targets{0, 1, 2, 98};
  check_kernels<float>({normal<float>({4}, 1)}, [&](auto& device, std::span<const Tensor<float>> to) {
    CrossEntropySums sums;
    cross_entropy_forward<float>(device, hidden.view(), weight.view(), {}, targets, {}, {}, {}, {}, {},
                                 {nullptr, &sums});
    CHECK(sums.correct == 1);
    write(sums, to[0]);
  });
}

TEST_CASE("cross-entropy on a GPU: more rows than a chunk of logits holds") {
  constexpr std::int64_t kVocabulary = (std::int64_t{1} << 26) / 2 + 1;  // one row at a time
  TestTensor<float> hidden = normal<float>({2, 1}, 1), weight{{kVocabulary, 1}, std::vector<float>(kVocabulary, 1)};
  const std::vector<std::int32_t> targets{5, 7};
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  CrossEntropySums sums;
  TestTensor<float> dhidden = normal<float>({2, 1}, 2), dweight = weight, out = normal<float>({2}, 3);
  cross_entropy_forward<float>(device, hidden.view(), weight.view(), {}, targets, {}, {}, dhidden.view(),
                               dweight.view(), {}, {nullptr, &sums});
  CHECK(sums.tokens == 2);
  CHECK(sums.loss == doctest::Approx(2 * std::log(static_cast<double>(kVocabulary))).epsilon(1e-5));
  CHECK(dweight.values[5] == doctest::Approx(1 - hidden.values[0]));
  CHECK(dweight.values[7] == doctest::Approx(1 - hidden.values[1]));
  token_log_probabilities<float>(device, hidden.view(), weight.view(), {}, targets, out.values.data());
  for (const float probability : out.values)
    CHECK(probability == doctest::Approx(-std::log(static_cast<double>(kVocabulary))).epsilon(1e-5));
}

}  // namespace
}  // namespace heed
