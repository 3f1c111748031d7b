#include "heed/ops/dropout.h"

#include "heed/ops/residual.h"
#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE("dropout on a GPU: the mask has the bits of the CPU's, for parts of any length") {
  // The last part is long enough for random bits that equal the threshold.
  const std::vector<std::int64_t> lengths{8, 256, 1, 0, 127, 128, 129, 1000, 3, 400000};
  constexpr std::int64_t kSlack = 40;
  for (const std::uint32_t threshold : {1U, 6554U, 32768U, 65536U}) {
    CAPTURE(threshold);
    std::vector<DropoutPart> parts;
    std::int64_t all = kSlack;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      parts.push_back({RandomStream(0x123456789ABCDEF, RandomUse::dropout, i << 40 | 5, static_cast<std::uint32_t>(i)),
                       lengths[i]});
      all += lengths[i];
    }
    const TestTensor<std::uint8_t> before{{all}, std::vector<std::uint8_t>(static_cast<std::size_t>(all), 7)};
    check_kernels<std::uint8_t>({before}, [&](auto& device, std::span<const Tensor<std::uint8_t>> to) {
      draw_dropout_parts(device, parts, threshold, kSlack, to[0].data());
    });
  }
}

TEST_CASE_TEMPLATE("dropout on a GPU: with a mask and without one", T, float, double) {
  constexpr std::int64_t kSize = 1000;
  TestTensor<T> x = normal<T>({kSize}, 1), branch = normal<T>({kSize}, 2);
  std::vector<std::uint8_t> kept(kSize);
  fill_dropout_mask(RandomStream(3, RandomUse::dropout), dropout_threshold(0.3), kSize, kept.data());
  for (const DropoutMask<T>& mask : {DropoutMask<T>{}, DropoutMask<T>{kept.data(), T(1 / 0.7)}}) {
    CAPTURE(static_cast<bool>(mask));
    check_kernels<T>({normal<T>({kSize}, 3), normal<T>({kSize}, 4), normal<T>({kSize}, 5)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       dropout_forward(device, x.view(), mask, to[0]);
                       dropout_backward(device, x.view(), mask, to[1]);
                       residual_forward(device, x.view(), {branch.view()}, mask, to[2]);
                     });
  }
}

}  // namespace
}  // namespace heed
