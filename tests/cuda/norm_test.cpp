#include <array>

#include "heed/ops/arithmetic.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/dropout.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/residual.h"
#include "heed/ops/residual_norm.h"
#include "heed/ops/stochastic_depth.h"
#include "kernel_check.h"

namespace heed {
namespace {

constexpr double kEpsilon = 1e-3;
constexpr RowNorm kNorms[] = {RowNorm::layer, RowNorm::rms};

/// The rows and columns of the matrices of these tests: about a warp and about a block of columns, more rows than one
/// chunk of a sum over rows has, and rows for each kind of team (see row_team_cuda-inl.h).
constexpr std::array<std::int64_t, 2> kSizes[] = {{0, 5},   {1, 1},   {2, 31},  {3, 32},  {2, 33},   {70, 3},
                                                  {1, 301}, {70, 64}, {9, 132}, {6, 516}, {3, 1028}, {2, 4100}};

TEST_CASE_TEMPLATE("sums over rows on a GPU: any number of rows and chunks", T, float, double) {
  for (const std::int64_t rows : {0, 1, 8, 64, 65, 200, 17000}) {
    CAPTURE(rows);
    const std::int64_t columns = rows > 1000 ? 3 : 70;
    TestTensor<T> x = normal<T>({rows, columns}, 1);
    const auto sums = [&](auto& device, std::span<const Tensor<T>> to) {
      if constexpr (std::is_same_v<decltype(device), CudaContext&>) {
        add_column_sums(device, x.view(), to[0]);
      } else {
        for (std::int64_t c = 0; c < columns; ++c) {
          double sum = 0;
          for (std::int64_t r = 0; r < rows; ++r) sum += static_cast<double>(x.view().row(r)[c]);
          to[0][c] += static_cast<T>(sum);
        }
      }
    };
    check_kernels<T>({normal<T>({columns}, 2)}, sums);
  }
}

TEST_CASE_TEMPLATE("normalisation of rows on a GPU", T, float, double) {
  for (const RowNorm kind : kNorms)
    for (const auto& [rows, columns] : kSizes) {
      CAPTURE(rows);
      CAPTURE(columns);
      const Shape shape{rows, columns};
      TestTensor<T> x = normal<T>(shape, 1), dy = normal<T>(shape, 2), scale = normal<T>({columns}, 3);
      TestTensor<T> shift = normal<T>({columns}, 4), statistics = normal<T>({rows, 2}, 5);
      for (T& value : x.values) value += 1;
      // RMS normalisation does not centre a row, and saves 0 as the mean.
      for (std::int64_t r = 0; kind == RowNorm::rms && r < rows; ++r) statistics.view().row(r)[0] = 0;
      const Tensor<T> bias = kind == RowNorm::layer ? shift.view() : Tensor<T>();
      check_kernels<T>(
          {normal<T>(shape, 6), normal<T>({rows, 2}, 7), normal<T>(shape, 8), normal<T>(shape, 9),
           normal<T>({columns}, 10), normal<T>({columns}, 11), normal<T>({columns}, 12), x},
          [&](auto& device, std::span<const Tensor<T>> to) {
            const Tensor<T> none;
            row_norm_forward(device, kind, x.view(), scale.view(), bias, kEpsilon, {to[0]}, to[1]);
            row_norm_forward(device, kind, x.view(), scale.view(), bias, kEpsilon, {to[2]}, none);
            row_norm_forward(device, kind, to[7], scale.view(), bias, kEpsilon, {to[7]}, none);
            row_norm_backward(device, kind, x.view(), scale.view(), statistics.view(), dy.view(), to[3], to[4],
                              bias ? to[5] : none);
            row_norm_backward(device, kind, x.view(), scale.view(), statistics.view(), dy.view(), none, none, to[6]);
            row_norm_backward(device, kind, x.view(), scale.view(), statistics.view(), dy.view(), none, none, none);
          });
    }
}

TEST_CASE_TEMPLATE("residual connections with normalisation on a GPU", T, float, double) {
  for (const RowNorm kind : kNorms)
    for (const auto& [rows, columns] : kSizes) {
      CAPTURE(rows);
      CAPTURE(columns);
      const Shape shape{rows, columns};
      TestTensor<T> residual = normal<T>(shape, 1), branch = normal<T>(shape, 2), scale = normal<T>({columns}, 3);
      TestTensor<T> shift = normal<T>({columns}, 4), statistics = normal<T>({rows, 2}, 5), dsum = normal<T>(shape, 6);
      TestTensor<T> dnormed = normal<T>(shape, 7);
      for (std::int64_t r = 0; kind == RowNorm::rms && r < rows; ++r) statistics.view().row(r)[0] = 0;
      std::vector<std::uint8_t> kept(static_cast<std::size_t>(shape.size()));
      fill_dropout_mask(RandomStream(3, RandomUse::dropout), dropout_threshold(0.3), shape.size(), kept.data());
      const Tensor<T> bias = kind == RowNorm::layer ? shift.view() : Tensor<T>(), none;
      for (const DropoutMask<T>& mask : {DropoutMask<T>{}, DropoutMask<T>{kept.data(), T(1 / 0.7)}}) {
        CAPTURE(static_cast<bool>(mask));
        check_kernels<T>({normal<T>(shape, 8), normal<T>(shape, 9), normal<T>({rows, 2}, 10), residual, branch},
                         [&](auto& device, std::span<const Tensor<T>> to) {
                           residual_norm_forward(device, kind, residual.view(), {branch.view()}, mask, scale.view(),
                                                 bias, kEpsilon, to[0], {to[1]}, to[2]);
                           // The sum in the memory of the branch, and the result in that of the residual.
                           residual_norm_forward(device, kind, to[3], {to[4]}, mask, scale.view(), bias, kEpsilon,
                                                 to[4], {to[3]}, none);
                         });
        for (const bool adds : {false, true}) {
          CAPTURE(adds);
          const auto backward = [&](auto& device, const Tensor<T>& above, const Tensor<T>& dresidual,
                                    bool adds_to_residual, const Tensor<T>& dbranch, const Tensor<T>& dscale,
                                    const Tensor<T>& dbias) {
            residual_norm_backward(device, kind, residual.view(), mask, scale.view(), statistics.view(), above,
                                   dnormed.view(), dresidual, adds_to_residual, {dbranch}, adds, dscale, dbias);
          };
          check_kernels<T>({normal<T>(shape, 11), normal<T>(shape, 12), normal<T>({columns}, 13),
                            normal<T>({columns}, 14), normal<T>(shape, 15), normal<T>(shape, 16), normal<T>(shape, 17)},
                           [&](auto& device, std::span<const Tensor<T>> to) {
                             backward(device, dsum.view(), to[0], !adds, to[1], to[2], bias ? to[3] : none);
                             backward(device, none, to[4], adds, none, none, none);
                             backward(device, none, none, !adds, to[5], none, none);
                             // The residual and the branch are the same variable.
                             if (adds) backward(device, none, to[6], false, to[6], none, none);
                           });
        }
      }
    }
}

TEST_CASE_TEMPLATE("batch normalisation on a GPU", T, float, double) {
  for (const auto& [rows, columns] : kSizes) {
    if (rows == 0) continue;
    CAPTURE(rows);
    CAPTURE(columns);
    const Shape shape{rows, columns}, each{columns};
    TestTensor<T> x = normal<T>(shape, 1), dy = normal<T>(shape, 2), mean = normal<T>(each, 3);
    TestTensor<T> inverse = normal<T>(each, 4), scale = normal<T>(each, 5), bias = normal<T>(each, 6);
    TestTensor<T> variance = inverse;
    for (T& value : variance.values) value *= value;
    check_kernels<T>({normal<T>(each, 7), normal<T>(each, 8), normal<T>(shape, 9), x, normal<T>(shape, 10),
                      normal<T>(each, 11), normal<T>(each, 12), normal<T>(shape, 13), normal<T>(each, 14),
                      normal<T>({columns + 1}, 15), normal<T>(each, 16)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       const Tensor<T> none;
                       const auto backward = [&](const Tensor<T>& dx, const Tensor<T>& dscale, const Tensor<T>& dbias) {
                         batch_norm_backward(device, x.view(), mean.view(), inverse.view(), scale.view(), dy.view(), dx,
                                             dscale, dbias);
                       };
                       column_statistics(device, x.view(), to[0], to[1]);
                       batch_norm_forward(device, x.view(), mean.view(), inverse.view(), scale.view(), bias.view(),
                                          to[2]);
                       batch_norm_forward(device, to[3], mean.view(), inverse.view(), scale.view(), bias.view(), to[3]);
                       backward(to[4], to[5], to[6]);
                       backward(to[7], none, none);
                       backward(none, none, to[8]);
                       add_statistic(device, mean.view(), T(1.25), rows, to[9]);
                       scale_into(device, inverse_deviation(device, variance.view(), kEpsilon), T(1), T(0), to[10]);
                     });
  }
}

TEST_CASE("normalisation on a GPU: a result that is rounded too") {
  std::int64_t columns = 70;
  SUBCASE("numbers one by one") {}
  SUBCASE("packs") {
    columns = 72;
  }
  const Shape shape{5, columns};
  TestTensor<float> x = normal<float>(shape, 1), branch = normal<float>(shape, 2), scale = normal<float>({columns}, 3);
  TestTensor<float> bias = normal<float>({columns}, 4), y = normal<float>(shape, 5), sum = normal<float>(shape, 6);
  TestTensor<Bfloat16> rounded{shape, std::vector<Bfloat16>(y.values.size())};
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  const auto check = [&] {
    for (std::size_t i = 0; i < y.values.size(); ++i) CHECK(rounded.values[i] == to_bfloat16(y.values[i]));
  };
  for (const RowNorm kind : kNorms) {
    row_norm_forward(device, kind, x.view(), scale.view(), bias.view(), kEpsilon, {y.view(), rounded.view()}, {});
    check();
    residual_norm_forward(device, kind, x.view(), {branch.view()}, {}, scale.view(), bias.view(), kEpsilon, sum.view(),
                          {y.view(), rounded.view()}, {});
    check();
  }
}

TEST_CASE("residual connections on a GPU: a branch that is stored as bfloat16") {
  for (const std::int64_t columns : {70, 72, 600, 5000}) {
    CAPTURE(columns);
    const Shape shape{5, columns};
    TestTensor<float> residual = normal<float>(shape, 1), scale = normal<float>({columns}, 2);
    TestTensor<Bfloat16> branch = rounded(normal<float>(shape, 3));
    TestTensor<float> full = in_full(branch), sum = normal<float>(shape, 4), y = sum, expected_sum = sum,
                      expected = sum;
    std::vector<std::uint8_t> kept(static_cast<std::size_t>(shape.size()));
    fill_dropout_mask(RandomStream(3, RandomUse::dropout), dropout_threshold(0.3), shape.size(), kept.data());
    const DropoutMask<float> mask{kept.data(), 1 / 0.7F};
    Arena arena, host_arena;
    CudaContext device{arena, host_arena};
    const auto add = [&](MaybeRounded<float> of_branch, TestTensor<float>& to_sum, TestTensor<float>& to) {
      residual_norm_forward(device, RowNorm::layer, residual.view(), of_branch, mask, scale.view(), scale.view(),
                            kEpsilon, to_sum.view(), {to.view()}, {});
    };
    add({full.view()}, expected_sum, expected);
    add({{}, branch.view()}, sum, y);
    CHECK(sum.values == expected_sum.values);
    CHECK(y.values == expected.values);
    residual_forward(device, residual.view(), {full.view()}, mask, expected.view());
    residual_forward(device, residual.view(), {{}, branch.view()}, mask, y.view());
    CHECK(y.values == expected.values);
    const std::vector<std::int32_t> offsets{0, 2, 5};
    const std::vector<float> factors{1.25F, 0};
    scale_sequences<float>(device, {full.view()}, {offsets}, factors, false, expected.view());
    scale_sequences<float>(device, {{}, branch.view()}, {offsets}, factors, false, y.view());
    CHECK(y.values == expected.values);
  }
}

TEST_CASE("residual sums on a GPU: the gradient of a branch that is stored as bfloat16 is rounded once") {
  std::int64_t columns = 70;
  SUBCASE("numbers one by one") {}
  SUBCASE("packs") {
    columns = 72;
  }
  const Shape shape{5, columns};
  TestTensor<float> sum = normal<float>(shape, 1), scale = normal<float>({columns}, 2),
                    statistics = normal<float>({5, 2}, 3), dnormed = normal<float>(shape, 4),
                    dresidual = normal<float>(shape, 5), dbranch = dresidual;
  TestTensor<Bfloat16> stored = rounded(dbranch);
  std::vector<std::uint8_t> kept(sum.values.size());
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = i % 3 != 0;
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  for (const RowNorm kind : {RowNorm::layer, RowNorm::rms}) {
    const auto backward = [&](MaybeRounded<float> to) {
      residual_norm_backward<float>(device, kind, sum.view(), {kept.data(), 1.25F}, scale.view(), statistics.view(), {},
                                    dnormed.view(), {}, false, to, false, {}, {});
    };
    backward({dbranch.view()});
    backward({{}, stored.view()});
    CHECK(stored.values == rounded(dbranch).values);
    CHECK(stored.values[1] != Bfloat16{});
  }
}

}  // namespace
}  // namespace heed
