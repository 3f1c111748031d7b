#include "heed/ops/softmax.h"

#include <limits>

#include "heed/ops/masked_softmax.h"
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

TEST_CASE("softmax on a GPU: NaN spreads in its row and no further") {
  constexpr std::int64_t kColumns = 40;
  TestTensor<float> x = normal<float>({3, kColumns}, 1), y = x;
  x.view().row(0)[33] = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(x.view().row(1), kColumns, std::numeric_limits<float>::quiet_NaN());
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  softmax_forward(device, x.view(), y.view());
  for (std::int64_t i = 0; i < 3 * kColumns; ++i) CHECK(std::isnan(y.view()[i]) == (i < 2 * kColumns));
}

TEST_CASE_TEMPLATE("masked softmax on a GPU: each mask alone, all masks and none", T, float, double) {
  constexpr std::int64_t kSequences = 3, kQueries = 4;
  const T never = -std::numeric_limits<T>::infinity();
  for (const std::int64_t keys : {0, 1, 31, 45}) {
    CAPTURE(keys);
    const auto bytes = [](const Shape& shape, std::uint64_t number) {
      const TestTensor<T> x = normal<T>(shape, number);
      TestTensor<std::uint8_t> out{shape, {}};
      for (const T value : x.values) out.values.push_back(value > 1 ? 2 : 0);
      return out;
    };
    const Shape shape{kSequences, kQueries, keys}, shared{kQueries, keys};
    TestTensor<T> x = normal<T>(shape, 1), additive = normal<T>(shape, 2), shared_additive = normal<T>(shared, 3);
    for (std::size_t i = 0; i < additive.values.size(); i += 7) additive.values[i] = never;
    TestTensor<std::uint8_t> padding = bytes({kSequences, keys}, 4), hidden = bytes(shape, 5);
    TestTensor<std::uint8_t> shared_hidden = bytes(shared, 6);
    std::fill_n(hidden.view().row(5), keys, std::uint8_t{1});
    const auto all = static_cast<std::int32_t>(keys);
    const std::vector<std::int32_t> lengths{all / 2, 0, all};
    const std::vector<std::int32_t> query_lengths{all, all / 3, 0, 1 % (all + 1), all, all, 0, all / 2, all, 0, 0, all};
    const auto constant = []<class Element>(const TestTensor<Element>& tensor) {
      return Tensor<const Element>(tensor.values.data(), tensor.shape);
    };
    const std::vector<SoftmaxMask<T>> masks{
        {},
        {.valid_lengths = lengths},
        {.valid_lengths = query_lengths},
        {.key_padding = constant(padding)},
        {.hidden = constant(hidden)},
        {.hidden = constant(shared_hidden)},
        {.additive = constant(additive)},
        {.additive = constant(shared_additive)},
        {lengths, constant(padding), constant(shared_hidden), constant(additive)},
        {query_lengths, constant(padding), constant(hidden), constant(shared_additive)},
    };
    std::vector<TestTensor<T>> before;
    for (std::size_t i = 0; i < masks.size(); ++i) before.push_back(normal<T>(shape, 10 + i));
    check_kernels<T>(before, [&](auto& device, std::span<const Tensor<T>> to) {
      for (std::size_t i = 0; i < masks.size(); ++i) masked_softmax_forward(device, x.view(), masks[i], to[i]);
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
