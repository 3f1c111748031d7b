#include "heed/ops/linear.h"

#include "heed/ops/matmul.h"
#include "kernel_check.h"

namespace heed {
namespace {

constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu, Activation::swish,
                                       Activation::tanh};

TEST_CASE_TEMPLATE("linear layer on a GPU: all activation functions, forward and backward", T, float, double) {
  for (const Activation activation : kActivations)
    for (const bool has_bias : {true, false}) {
      CAPTURE(static_cast<int>(activation));
      CAPTURE(has_bias);
      constexpr std::int64_t kRows = 37, kIn = 19, kOut = 33;
      TestTensor<T> x = normal<T>({kRows, kIn}, 1), weight = normal<T>({kOut, kIn}, 2), bias = normal<T>({kOut}, 3),
                    kept = normal<T>({kRows, kOut}, 4);
      const Tensor<T> b = has_bias ? bias.view() : Tensor<T>();
      const std::vector<TestTensor<T>> before{normal<T>({kRows, kOut}, 5), normal<T>({kRows, kOut}, 6),
                                              normal<T>({kRows, kOut}, 7), normal<T>({kRows, kIn}, 8),
                                              normal<T>({kOut, kIn}, 9),   normal<T>({kOut}, 10),
                                              normal<T>({kRows, kOut}, 11)};
      for (const bool adds : {false, true}) {
        CAPTURE(adds);
        check_kernels<T>(before, [&](auto& device, std::span<const Tensor<T>> to) {
          linear_forward<T>(device, {x.view()}, {weight.view()}, {b}, activation, to[0], {to[1]});
          linear_backward<T>(device, {x.view()}, {weight.view()}, activation, {kept.view()}, {to[2]}, {to[3]}, adds,
                             to[4], has_bias ? to[5] : Tensor<T>());
          linear_inference<T>(device, nullptr, {x.view()}, weight.view(), b, activation, {to[6]});
        });
      }
    }
}

TEST_CASE("inference on a GPU: 8-bit integers give the bits of the CPU, kept weights those of weights that are not") {
  for (const Activation activation : {Activation::none, Activation::relu})
    for (const std::int64_t in : {5, 64, 150}) {
      CAPTURE(static_cast<int>(activation));
      CAPTURE(in);
      constexpr std::int64_t kRows = 13, kOut = 37;
      TestTensor<float> x = normal<float>({kRows, in}, 1), bias = normal<float>({kOut}, 3);
      std::fill_n(x.view().row(2), in, 0.0F);
      ParameterLayout layout;
      const ParameterId id = layout.add("w", {kOut, in}, Initialiser::xavier());
      ParameterValues<float> values(layout);
      values.initialise(2);
      const emulation::AllowHostMemory x_is_on_host;
      PackedParameters<float> of_cpu(values), of_gpu(values, std::optional(0));
      const auto multiply = [&](auto& device, Precision precision, PackedParameters<float>* packed) {
        device.precision = precision;
        const ParameterView<float> view = packed ? packed->view() : of_gpu.view();
        TestTensor<float> y = normal<float>({kRows, kOut}, 4);
        linear_inference<float>(device, packed, {x.view()}, view.view(id, {kOut, in}), bias.view(), activation,
                                {y.view()});
        return y.values;
      };
      Arena arena, host_arena;
      CpuContext cpu{arena};
      CudaContext gpu{arena, host_arena};
      const std::vector<float> expected = multiply(cpu, Precision::int8, &of_cpu);
      for (const emulation::ThreadOrder order : emulation::kThreadOrders) {
        emulation::set_thread_order(order);
        CHECK(multiply(gpu, Precision::int8, &of_gpu) == expected);
        CHECK(multiply(gpu, Precision::int8, nullptr) == expected);
        CHECK(multiply(gpu, Precision::bfloat16, &of_gpu) == multiply(gpu, Precision::bfloat16, nullptr));
      }
      emulation::set_thread_order(emulation::ThreadOrder::ascending);
    }
}

TEST_CASE_TEMPLATE("linear layer on a GPU: gradients of many rows and of columns that are read in packs", T, float,
                   double) {
  // Sums of up to 271 numbers, which AVX2 adds in another order than AVX-512.
  constexpr double kTolerance = sizeof(T) == sizeof(float) ? 2e-5 : 1e-13;
  for (const Activation activation : kActivations)
    for (const std::int64_t out : {8, 264, 271}) {
      CAPTURE(static_cast<int>(activation));
      CAPTURE(out);
      constexpr std::int64_t kRows = 130, kIn = 2;
      TestTensor<T> x = normal<T>({kRows, kIn}, 1), weight = normal<T>({out, kIn}, 2),
                    kept = normal<T>({kRows, out}, 3);
      check_kernels<T>(
          {normal<T>({kRows, out}, 4), normal<T>({kRows, kIn}, 5), normal<T>({out, kIn}, 6), normal<T>({out}, 7),
           normal<T>({kRows, out}, 8)},
          [&](auto& device, std::span<const Tensor<T>> to) {
            linear_backward<T>(device, {x.view()}, {weight.view()}, activation, {kept.view()}, {to[0]}, {to[1]}, false,
                               to[2], to[3]);
            linear_backward<T>(device, {x.view()}, {weight.view()}, activation, {kept.view()}, {to[4]}, {to[1]}, true,
                               to[2], {});
          },
          kTolerance);
    }
}

TEST_CASE("linear layer on a GPU: the sums of gradients that are stored as bfloat16 do not depend on packs") {
  constexpr std::int64_t kRows = 130, kIn = 2, kOut = 264;
  TestTensor<float> x = normal<float>({kRows, kIn}, 1), weight = normal<float>({kOut, kIn}, 2);
  const TestTensor<Bfloat16> dy = rounded(normal<float>({kRows, kOut}, 3)),
                             y = rounded(normal<float>({kRows, kOut}, 4));
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  device.precision = Precision::bfloat16;
  for (const Activation activation : {Activation::none, Activation::relu}) {
    CAPTURE(static_cast<int>(activation));
    // The gradients begin one number behind an aligned address, or at an aligned address.
    const auto sums = [&](std::size_t begin) {
      TestTensor<float> dbias = normal<float>({kOut}, 5);
      std::vector<Bfloat16> memory(begin + dy.values.size());
      std::ranges::copy(dy.values, memory.begin() + static_cast<std::ptrdiff_t>(begin));
      TestTensor<Bfloat16> kept = y;
      linear_backward<float>(device, {x.view()}, {weight.view()}, activation, {{}, kept.view()},
                             {{}, {memory.data() + begin, {kRows, kOut}}}, {}, false, {}, dbias.view());
      return dbias.values;
    };
    CHECK(sums(1) == sums(0));
  }
}

TEST_CASE_TEMPLATE("inference on a GPU: a row has the same bits in a product of any number of rows", T, float, double) {
  constexpr std::int64_t kRows = 300;
  Arena arena(kAlignedMemory), host_arena;
  for (const Precision precision : {Precision::float32, Precision::bfloat16})
    for (const std::int64_t in : {1, 2, 3, 24})
      for (const std::int64_t out : {1, 8}) {
        CAPTURE(static_cast<int>(precision));
        CAPTURE(in);
        CAPTURE(out);
        TestTensor<T> x = normal<T>({kRows, in}, 1), weight = normal<T>({out, in}, 2), bias = normal<T>({out}, 3),
                      all = normal<T>({kRows, out}, 4), alone = normal<T>({1, out}, 5);
        CudaContext device{arena, host_arena, precision};
        for (const std::int64_t rows : {2, 64, 65, 257, 300}) {
          CAPTURE(rows);
          const auto multiply = [&](Tensor<T> of, Tensor<T> y) {
            linear_inference<T>(device, nullptr, {of}, weight.view(), bias.view(), Activation::relu, {y});
          };
          multiply(x.view().row_block(0, rows), all.view().row_block(0, rows));
          for (std::int64_t r = 0; r < rows; ++r) {
            multiply(x.view().row_block(r, 1), alone.view());
            REQUIRE(std::memcmp(alone.values.data(), all.view().row(r), static_cast<std::size_t>(out) * sizeof(T)) ==
                    0);
          }
        }
      }
}

TEST_CASE("inference on a GPU: rounded inputs give the bits of full ones, rounded results are the full ones, rounded") {
  const emulation::AllowHostMemory x_is_on_host;
  constexpr std::int64_t kRows = 70, kIn = 24;
  Arena arena(kAlignedMemory), host_arena;
  CudaContext device{arena, host_arena, Precision::bfloat16};
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu})
    for (const std::int64_t out : {7, 8})
      for (const bool kept : {false, true}) {
        CAPTURE(static_cast<int>(activation));
        CAPTURE(out);
        CAPTURE(kept);
        TestTensor<float> x = normal<float>({kRows, kIn}, 1), full = normal<float>({kRows, out}, 4), again = full;
        TestTensor<Bfloat16> x_rounded = rounded(x), result = rounded(full);
        ParameterLayout layout;
        const ParameterId weight = layout.add("w", {out, kIn}, Initialiser::xavier()),
                          bias = layout.add("b", {out}, Initialiser::normal(1));
        ParameterValues<float> values(layout);
        values.initialise(2);
        // cuBLASLt adds a bias of the type of the result.
        for (float& value : values.view(bias, {out}).span()) value = round_to_bfloat16(value);
        PackedParameters<float> packed(values, std::optional(0));
        const auto multiply = [&](MaybeRounded<float> from, MaybeRounded<float> to) {
          const ParameterView<float> view = kept ? packed.view() : ParameterView<float>(values);
          linear_inference<float>(device, kept ? &packed : nullptr, from, view.view(weight, {out, kIn}),
                                  view.view(bias, {out}), activation, to);
        };
        multiply({x.view()}, {full.view()});
        multiply({{}, x_rounded.view()}, {again.view()});
        multiply({{}, x_rounded.view()}, {{}, result.view()});
        CHECK(again.values == full.values);
        CHECK(result.values == rounded(full).values);
      }
}

TEST_CASE("linear layer on a GPU: matrices that are stored as bfloat16") {
  if (!takes_bfloat16(Precision::bfloat16)) {
    MESSAGE("skipped: this CPU does not multiply bfloat16 numbers, so that there is nothing to compare with");
    return;
  }
  // Every product has sums of few numbers with few bits, so that both devices round the same sums to bfloat16.
  constexpr std::int64_t kRows = 20, kIn = 5, kOut = 9;
  TestTensor<float> weight = normal<float>({kOut, kIn}, 2), bias = normal<float>({kOut}, 3);
  TestTensor<float> positive = normal<float>({kRows, kOut}, 4);
  for (float& value : positive.values) value = std::max(value, 0.0F);
  TestTensor<Bfloat16> x = rounded(normal<float>({kRows, kIn}, 1)), y = rounded(positive);
  for (TestTensor<float>* each : {&weight, &bias})
    for (float& value : each->values) value = std::round(4 * value) / 4;
  for (const Activation activation : {Activation::none, Activation::relu}) {
    CAPTURE(static_cast<int>(activation));
    check_kernels<float>(
        {normal<float>({kRows, kOut}, 5), normal<float>({kRows, kOut}, 6), normal<float>({kRows, kIn}, 7),
         normal<float>({kOut, kIn}, 8), normal<float>({kOut}, 9)},
        [&](auto& device, std::span<const Tensor<float>> to) {
          device.precision = Precision::bfloat16;
          const ArenaScope scope(device.arena);
          const Tensor<Bfloat16> result = device.arena.template tensor<Bfloat16>({kRows, kOut});
          linear_forward<float>(device, {{}, x.view()}, {weight.view()}, {bias.view()}, activation, {}, {{}, result});
          for (std::int64_t i = 0; i < result.size(); ++i) to[0][i] = from_bfloat16(result[i]);
          for (std::int64_t i = 0; i < result.size(); ++i) to[1][i] = std::round(to[1][i]);
          linear_backward<float>(device, {{}, x.view()}, {weight.view()}, activation, {{}, y.view()}, {to[1]}, {to[2]},
                                 false, to[3], to[4]);
          std::fill_n(to[1].data(), to[1].size(), 0.0F);  // dz, which only the CPU stores there
        });
  }
}

TEST_CASE("linear layer on a GPU: an input that is rounded once gives the bits of one that each product rounds") {
  constexpr std::int64_t kRows = 37, kOut = 33;
  std::int64_t in = 19;
  SUBCASE("numbers one by one") {}
  SUBCASE("packs") {
    in = 24;
  }
  TestTensor<float> x = normal<float>({kRows, in}, 1), weight = normal<float>({kOut, in}, 2),
                    bias = normal<float>({kOut}, 3);
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  CHECK_FALSE(operand_of_products(device, MaybeRounded<float>{x.view()}).rounded);
  device.precision = Precision::bfloat16;
  const MaybeRounded<float> once = operand_of_products(device, MaybeRounded<float>{x.view()});
  REQUIRE(once.rounded.size() == x.view().size());
  for (std::int64_t i = 0; i < once.rounded.size(); ++i) CHECK(once.rounded[i] == to_bfloat16(x.view()[i]));
  CHECK(operand_of_products(device, once).rounded.data() == once.rounded.data());
  const auto compute = [&](MaybeRounded<float> input) {
    std::vector<TestTensor<float>> to{normal<float>({kRows, kOut}, 4), normal<float>({kRows, kOut}, 5),
                                      normal<float>({kRows, in}, 6), normal<float>({kOut, in}, 7),
                                      normal<float>({kOut}, 8)};
    linear_forward<float>(device, input, {weight.view()}, {bias.view()}, Activation::none, {}, {to[0].view()});
    linear_backward<float>(device, input, {weight.view()}, Activation::none, {}, {to[1].view()}, {to[2].view()}, true,
                           to[3].view(), to[4].view());
    std::vector<float> all;
    for (const TestTensor<float>& each : to) all.insert(all.end(), each.values.begin(), each.values.end());
    return all;
  };
  CHECK(compute(once) == compute({x.view()}));
}

TEST_CASE("linear layer on a GPU: parameters, a result and gradients that are stored as bfloat16 are rounded once") {
  constexpr std::int64_t kRows = 37, kIn = 19, kOut = 33;
  TestTensor<float> weight = normal<float>({kOut, kIn}, 2), bias = in_full(rounded(normal<float>({kOut}, 3)));
  TestTensor<Bfloat16> x = rounded(normal<float>({kRows, kIn}, 1)),
                       dy_rounded = rounded(normal<float>({kRows, kOut}, 4)), weight_rounded = rounded(weight),
                       bias_rounded = rounded(bias);
  const MaybeRounded<float> stored{weight.view(), weight_rounded.view()};
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  device.precision = Precision::bfloat16;
  for (const Activation activation : kActivations)
    for (const bool has_bias : {true, false}) {
      CAPTURE(static_cast<int>(activation));
      CAPTURE(has_bias);
      const Tensor<float> b = has_bias ? bias.view() : Tensor<float>();
      TestTensor<float> y = normal<float>({kRows, kOut}, 5), before = normal<float>({kRows, kOut}, 6);
      TestTensor<Bfloat16> y_rounded = rounded(y);
      const bool keeps = activation == Activation::gelu || activation == Activation::swish;
      const Tensor<float> kept = keeps ? before.view() : Tensor<float>();
      linear_forward<float>(device, {{}, x.view()}, {weight.view()}, {b}, activation, kept, {y.view()});
      linear_forward<float>(device, {{}, x.view()}, stored, {b, has_bias ? bias_rounded.view() : Tensor<Bfloat16>()},
                            activation, kept, {{}, y_rounded.view()});
      CHECK(y_rounded.values == rounded(y).values);

      TestTensor<float> dy = in_full(dy_rounded), dx = normal<float>({kRows, kIn}, 7);
      TestTensor<Bfloat16> arrived = dy_rounded, dx_rounded = rounded(dx);
      const auto backward = [&](MaybeRounded<float> w, MaybeRounded<float> from, MaybeRounded<float> to) {
        std::vector<TestTensor<float>> sums{normal<float>({kOut, kIn}, 8), normal<float>({kOut}, 9)};
        linear_backward<float>(device, {{}, x.view()}, w, activation,
                               keeps ? MaybeRounded<float>{before.view()} : MaybeRounded<float>{{}, y_rounded.view()},
                               from, to, false, sums[0].view(), has_bias ? sums[1].view() : Tensor<float>());
        sums[0].values.insert(sums[0].values.end(), sums[1].values.begin(), sums[1].values.end());
        return sums[0].values;
      };
      const std::vector<float> expected = backward({weight.view()}, {dy.view()}, {dx.view()});
      CHECK(backward(stored, {{}, arrived.view()}, {{}, dx_rounded.view()}) == expected);
      CHECK(dx_rounded.values == rounded(dx).values);
    }
}

TEST_CASE_TEMPLATE("products of matrices on a GPU: pairs of a batch, and transposes", T, float, double) {
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {33, 31}, {64, 5}, {7, 100}}) {
    CAPTURE(m);
    CAPTURE(n);
    constexpr std::int64_t kBatch = 3, kDepth = 6;
    TestTensor<T> a = normal<T>({kBatch, m, kDepth}, 1), b = normal<T>({kBatch, kDepth, n}, 2),
                  x = normal<T>({kBatch, m, n}, 3);
    check_kernels<T>({normal<T>({kBatch, m, n}, 4), normal<T>({kBatch, m, kDepth}, 5),
                      normal<T>({kBatch, kDepth, n}, 6), normal<T>({kBatch, n, m}, 7), normal<T>({kBatch, n, m}, 8)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       matmul_forward(device, a.view(), b.view(), to[0]);
                       matmul_backward(device, a.view(), b.view(), x.view(), to[1], to[2]);
                       transpose_into(device, x.view(), T(0), to[3]);
                       transpose_into(device, x.view(), T(1), to[4]);
                     });
  }
}

TEST_CASE("products of matrices on a GPU: a product without a sum is beta C") {
  for (const float beta : {0.0F, 1.0F}) {
    const TestTensor<float> c{{2, 3}, beta == 0 ? std::vector<float>(6, NAN) : std::vector<float>(6, 2)};
    check_kernels<float>({c}, [&](auto& device, std::span<const Tensor<float>> to) {
      const GemmOperand<float> none{nullptr, 1};
      gemm(device, 2, 3, 0, 1.0F, none, none, beta, to[0].data(), 3);
    });
  }
}

}  // namespace
}  // namespace heed
