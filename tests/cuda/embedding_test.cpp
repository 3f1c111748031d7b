#include "heed/ops/embedding.h"

#include "kernel_check.h"

namespace heed {
namespace {

/// Returns `count` numbers below `limit`, of which many are 3 and none is 5.
std::vector<std::int32_t> random_rows(std::int64_t count, std::uint32_t limit, std::uint64_t number) {
  const RandomStream stream(number, RandomUse::sampling);
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = stream.uniform(static_cast<std::uint64_t>(i));
    const auto row = static_cast<std::int32_t>(2 * x * limit);
    out.push_back(row >= static_cast<std::int32_t>(limit) || row == 5 ? 3 : row);
  }
  return out;
}

TEST_CASE_TEMPLATE("embedding on a GPU: with and without positions, dropout and gradients", T, float, double) {
  constexpr std::int64_t kWords = 23, kPlaces = 9;
  for (const std::int64_t count : {0, 1, 200})
    for (const std::int64_t columns : {1, 33, 150, 516}) {
      CAPTURE(count);
      CAPTURE(columns);
      TestTensor<T> weight = normal<T>({kWords, columns}, 1), table = normal<T>({kPlaces, columns}, 2);
      TestTensor<T> dy = normal<T>({count, columns}, 3);
      const std::vector<std::int32_t> ids = random_rows(count, kWords, 4), positions = random_rows(count, kPlaces, 5);
      std::vector<std::uint8_t> kept(static_cast<std::size_t>(count * columns));
      fill_dropout_mask(RandomStream(6, RandomUse::dropout), dropout_threshold(0.3), count * columns, kept.data());
      const DropoutMask<T> mask{kept.data(), T(1 / 0.7)};
      const EmbeddingRows with{ids.data(), positions.data(), count}, without{ids.data(), nullptr, count};
      check_kernels<T>({normal<T>(dy.shape, 7), normal<T>(dy.shape, 8), normal<T>(weight.shape, 9),
                        normal<T>(table.shape, 10), normal<T>(weight.shape, 11), normal<T>(table.shape, 12)},
                       [&](auto& device, std::span<const Tensor<T>> to) {
                         embedding_forward(device, with, weight.view(), table.view(), T(0.5), mask, to[0]);
                         embedding_forward(device, without, weight.view(), {}, T(0.5), {}, to[1]);
                         embedding_backward(device, with, T(0.5), mask, dy.view(), to[2], to[3]);
                         embedding_backward(device, without, T(0.5), {}, dy.view(), to[4], {});
                         embedding_backward(device, with, T(0.5), mask, dy.view(), {}, to[5]);
                       });
    }
}

TEST_CASE("embedding on a GPU: rows that are read 1 to 200 times, about the number of rows that are summed at once") {
  std::vector<std::int32_t> ids;
  for (std::int32_t word = 0; word < 200; ++word)
    for (std::int32_t time = 0; time < (word < 120 || word > 150 ? 1 : word); ++time) ids.push_back(word * 7 % 200);
  for (const std::int32_t word : {3, 5, 64, 65, 128, 129, 190})
    ids.insert(ids.end(), static_cast<std::size_t>(word), 201 + word);
  const EmbeddingRows rows{ids.data(), nullptr, std::ssize(ids)};
  TestTensor<double> dy = normal<double>({rows.count, 5}, 1);
  check_kernels<double>({normal<double>({400, 5}, 2)}, [&](auto& device, std::span<const Tensor<double>> to) {
    embedding_backward<double>(device, rows, 0.5, {}, dy.view(), to[0], {});
  });
}

}  // namespace
}  // namespace heed
