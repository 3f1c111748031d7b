#include "heed/ops/heads.h"

#include "heed/ops/rotary.h"
#include "heed/ops/stochastic_depth.h"
#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE_TEMPLATE("heads on a GPU: split, merged, averaged and with a row behind them", T, float, double) {
  struct Sizes {
    std::int64_t batch;
    int heads;
    std::int64_t length, d;
  };
  for (const auto& [batch, heads, length, d] : {Sizes{0, 2, 3, 4}, Sizes{1, 1, 1, 1}, Sizes{3, 4, 1, 5},
                                                Sizes{2, 3, 7, 11}, Sizes{70, 2, 2, 33}, Sizes{2, 5, 0, 3}}) {
    CAPTURE(batch);
    CAPTURE(length);
    const Shape merged{batch, length, heads * d}, split{batch * heads, length, d}, mean{batch, length, d};
    const Shape longer{batch, length + 1, d}, width{d};
    TestTensor<T> m = normal<T>(merged, 1), s = normal<T>(split, 2), x = normal<T>(mean, 3), y = normal<T>(longer, 4);
    TestTensor<T> row = normal<T>(width, 5);
    check_kernels<T>({normal<T>(split, 6), normal<T>(split, 7), normal<T>(merged, 8), normal<T>(merged, 9),
                      normal<T>(mean, 10), normal<T>(split, 11), normal<T>(longer, 12), normal<T>(longer, 13),
                      normal<T>(mean, 14), normal<T>(width, 15), normal<T>(mean, 16), normal<T>(width, 17)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       const Tensor<T> none;
                       rearrange_heads<T>(device, m.values.data(), merged, heads, false, T(0), to[0].data());
                       rearrange_heads<T>(device, m.values.data(), merged, heads, false, T(1), to[1].data());
                       rearrange_heads<T>(device, s.values.data(), merged, heads, true, T(0), to[2].data());
                       rearrange_heads<T>(device, s.values.data(), merged, heads, true, T(1), to[3].data());
                       mean_over_heads_forward(device, s.view(), heads, to[4]);
                       mean_over_heads_backward(device, x.view(), heads, to[5]);
                       append_row_forward(device, x.view(), row.view(), to[6]);
                       append_row_forward(device, x.view(), none, to[7]);
                       append_row_backward(device, y.view(), to[8], to[9]);
                       append_row_backward(device, y.view(), to[10], none);
                       append_row_backward(device, y.view(), none, to[11]);
                     });
  }
}

TEST_CASE_TEMPLATE("rotary positions on a GPU: sequences of any length, and a decoding step", T, float, double) {
  struct Sizes {
    std::int64_t columns, width, d;
  };
  for (const auto& [columns, width, d] : {Sizes{2, 2, 2}, Sizes{96, 64, 16}, Sizes{33, 24, 6}, Sizes{900, 600, 100}}) {
    CAPTURE(columns);
    const std::vector<std::int32_t> offsets{0, 1, 1, 8, 40, 41}, lengths{1, 32, 7};
    TestTensor<T> table = normal<T>({32, 2 * d}, 1);
    // The sines of even columns are negative, those of odd columns have the same size.
    for (std::int64_t p = 0; p < 32; ++p)
      for (std::int64_t i = 0; i < d; i += 2) {
        T* const row = table.view().row(p);
        row[i + 1] = row[i];
        row[d + i] = -row[d + i + 1];
      }
    check_kernels<T>({normal<T>({41, columns}, 2), normal<T>({41, columns}, 3), normal<T>({3, columns}, 4),
                      normal<T>({3, columns}, 5)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       rotary_forward(device, to[0], width, {offsets}, table.view());
                       rotary_forward(device, to[1], width, {offsets}, table.view(), true);
                       rotary_step(device, to[2], width, lengths, table.view());
                       rotary_forward(device, to[3], width, {}, table.view());
                       rotary_step(device, to[3], width, {}, table.view());
                     });
  }
}

TEST_CASE_TEMPLATE("stochastic depth on a GPU: a factor for each sequence", T, float, double) {
  const std::vector<std::int32_t> offsets{0, 1, 1, 8, 40, 41};
  const std::vector<T> factors{T(1.25), T(7), T(0), T(1.5), T(2)};
  for (const std::int64_t columns : {1, 31, 32, 33, 300}) {
    CAPTURE(columns);
    TestTensor<T> x = normal<T>({41, columns}, 1);
    check_kernels<T>({normal<T>({41, columns}, 2), normal<T>({41, columns}, 3), x, normal<T>({1, columns}, 4)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       scale_sequences<T>(device, {x.view()}, {offsets}, factors, false, to[0]);
                       scale_sequences<T>(device, {x.view()}, {offsets}, factors, true, to[1]);
                       scale_sequences<T>(device, {to[2]}, {offsets}, factors, false, to[2]);
                       scale_sequences<T>(device, {x.view()}, {}, {}, true, to[3]);
                     });
  }
}

}  // namespace
}  // namespace heed
