#include "heed/tensor/cuda_graphs.h"

#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "heed/decode/decoder.h"
#include "heed/decode/output_on_gpu.h"
#include "heed/model/decoder_cache.h"
#include "heed/tensor/cuda_device.h"
#include "heed/tensor/owned_device.h"
#include "random_model.h"
#ifdef HEED_EMULATED_GPU
#include "cuda_emulation.h"
#endif

namespace heed {
namespace {

/// A GPU, and a step that uploads some numbers, fills an array with another number, and copies the numbers after it.
class Steps {
 public:
  explicit Steps(std::int64_t most) : most_(most), out_(gpu_.arena.tensor<float>({2 * most})) {}

  /// Computes a step with the first numbers.size() elements of the array, and returns what the GPU has then.
  std::vector<float> compute(std::int64_t rows, const std::vector<float>& numbers, float fill) {
    std::vector<float> found(2 * numbers.size());
    Device(gpu_).step(rows, [&] {
      const auto n = std::ssize(numbers);
      Device(gpu_).put(Tensor<const float>(numbers.data(), {n}), Tensor<float>(out_.data() + most_, {n}));
      fill_on_gpu(gpu_, out_.data(), n, fill);
      copy_on_gpu(gpu_, out_.data() + n, out_.data() + most_, numbers.size() * sizeof(float));
      copy_from_gpu(gpu_, found.data(), out_.data(), found.size() * sizeof(float));
    });
    return found;
  }
  /// Checks what a step computes.
  void check(std::int64_t rows, const std::vector<float>& numbers, float fill) {
    std::vector<float> expected(numbers.size(), fill);
    expected.insert(expected.end(), numbers.begin(), numbers.end());
    CHECK(compute(rows, numbers, fill) == expected);
  }
  /// How many steps a graph has computed since the call before.
  std::int64_t graphs() {
    const std::int64_t all = gpu_.graphs ? gpu_.graphs->started() : 0;
    return all - std::exchange(counted_, all);
  }
  CudaContext& gpu() { return gpu_; }

 private:
  CudaDevice device_{0, Precision::float32};
  CudaContext& gpu_ = device_.context();
  std::int64_t most_;
  Tensor<float> out_;
  std::int64_t counted_ = 0;
};

TEST_CASE("steps on a GPU: the third step that differs in its uploads alone is a graph, and those after it") {
  Steps steps(100);
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    steps.check(1, {1.0F + static_cast<float>(i), 2, 3}, 7);
    CHECK(steps.graphs() == (i < 2 ? 0 : 1));
  }
  // Another parameter of a kernel, and then the old one again.
  steps.check(1, {1, 2, 3}, 8);
  CHECK(steps.graphs() == 0);
  steps.check(1, {4, 5, 6}, 7);
  CHECK(steps.graphs() == 1);
  // Another number of elements, with the same number of rows and with another one.
  steps.check(1, {1, 2}, 7);
  steps.check(2, {1, 2}, 7);
  CHECK(steps.graphs() == 0);
  steps.check(2, {3, 4}, 7);
  CHECK(steps.graphs() == 1);
  steps.check(1, {1, 2, 3}, 7);  // the first step with another number of rows is not collected
  CHECK(steps.graphs() == 0);
  steps.check(1, {3, 2, 1}, 7);
  CHECK(steps.graphs() == 1);
}

TEST_CASE("steps on a GPU: more kinds of steps than graphs are kept") {
  Steps steps(100);
  for (int round = 0; round < 2; ++round)
    for (int kind = 0; kind < 40; ++kind)
      for (int i = 0; i < 3; ++i)
        steps.check(1, std::vector<float>(static_cast<std::size_t>(kind + 1), static_cast<float>(i + round)), 5);
  CHECK(steps.graphs() == 2 * 40 * 2 - 1);
}

TEST_CASE("steps on a GPU: uploads of all sizes, also more than the locked memory of a step") {
  constexpr std::int64_t kMany = 600'000;
  Steps steps(kMany);
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{200'000}, std::int64_t{262'144}, kMany}) {
    CAPTURE(n);
    std::vector<float> numbers(static_cast<std::size_t>(n));
    for (int i = 0; i < 4; ++i) {
      std::iota(numbers.begin(), numbers.end(), static_cast<float>(i));
      steps.check(1, numbers, 5);
    }
    CHECK((steps.graphs() > 0) == (n * 4 <= 1 << 20));
  }
}

TEST_CASE("steps on a GPU: after a step that has failed, nothing of it runs") {
  Steps steps(100);
  for (int i = 0; i < 3; ++i) steps.check(1, {1, 2, 3}, 7);
  const Tensor<float> number = steps.gpu().arena.tensor<float>({1});
  fill_on_gpu(steps.gpu(), number.data(), 1, 1.0F);
  const auto fail = [&] {
    fill_on_gpu(steps.gpu(), number.data(), 1, 2.0F);
    throw Error("no more");
  };
  CHECK_THROWS_WITH_AS(Device(steps.gpu()).step(1, fail), "no more", Error);
  CHECK(Device(steps.gpu()).read(number) == 1);
  steps.check(1, {3, 2, 1}, 7);
  CHECK(steps.graphs() == 2);
  // What it has uploaded is uploaded again.
  const float ones[] = {1, 1};
  const auto upload = [&] { return static_cast<const float*>(upload_bytes(steps.gpu(), ones, sizeof ones)); };
  CHECK_THROWS_WITH_AS(Device(steps.gpu())
                           .step(1,
                                 [&] {
                                   upload();
                                   throw Error("no more");
                                 }),
                       "no more", Error);
  float found = 0;
  copy_from_gpu(steps.gpu(), &found, upload(), sizeof found);
  CHECK(found == 1);
}

TEST_CASE("steps on a GPU: a step that ends with an upload keeps it from the uploads of the next step") {
  CudaDevice device(0, Precision::float32);
  const Device gpu(device.context());
  const Tensor<float> a = gpu.arena().tensor<float>({1}), b = gpu.arena().tensor<float>({1});
  for (float one = 1; one < 6; one += 2) {
    const float two = one + 1;
    gpu.step(1, [&] { gpu.put(Tensor<const float>(&one, {1}), a); });
    gpu.step(1, [&] { gpu.put(Tensor<const float>(&two, {1}), b); });
    CHECK(gpu.read(a) == one);
    CHECK(gpu.read(b) == two);
  }
}

TEST_CASE("steps on a GPU: steps with many rows are not collected") {
  Steps steps(100);
  for (const std::int64_t rows : {256, 257})
    for (int i = 0; i < 4; ++i) steps.check(rows, {static_cast<float>(i)}, 7);
  CHECK(steps.graphs() == 2);
}

#ifdef HEED_EMULATED_GPU
TEST_CASE("steps on a GPU: where CUDA makes no graphs, the commands run one by one") {
  Steps steps(100);
  emulation::refuse_graphs(true);
  for (int i = 0; i < 5; ++i) steps.check(1, {static_cast<float>(i), 2, 3}, 7);
  emulation::refuse_graphs(false);
  steps.check(1, {9, 2, 3}, 7);  // it is not tried again
  CHECK(steps.graphs() == 0);
}
#endif

/// The two likeliest tokens after each step, their log-probabilities, and how many steps a graph has computed.
struct Decoded {
  std::vector<std::int32_t> ids;
  std::vector<float> log_probabilities;
  std::int64_t graphs = 0;
};

/// Decodes three sentences, one after the other, with the same tokens whatever the model computes. `as_steps` collects
/// the kernels of each step.
Decoded decode(const RandomModel& f, Precision precision, bool as_steps) {
  const auto packed = f.packed();
  OwnedDevice owned(packed->gpu(), precision);
  const Device device = owned;
  Graph<float> graph(device, packed->view(), packed.get());
  const auto state = f.model->make_state(device);
  Decoded out;
  for (int sentence = 0; sentence < 3; ++sentence) {
    PackedIds source;
    source.append(random_sentence(sentence + 3));
    graph.reset();
    state->start(graph, source);
    for (std::int32_t t = 0; t < 20; ++t) {
      graph.reset();
      std::vector<std::int32_t> ids(2);
      std::vector<float> log_probabilities(2);
      const auto step = [&] {
        const std::vector<std::int32_t> tokens{t == 0 ? kStartId : 4 + 3 * t};
        output_top_k_on_gpu(graph, state->step(graph, tokens).value, f.model->output_weight(graph).value,
                            f.model->output_bias(graph).value, 2, log_probabilities.data(), ids.data());
      };
      if (as_steps)
        device.step(1, step);
      else
        step();
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
      out.log_probabilities.insert(out.log_probabilities.end(), log_probabilities.begin(), log_probabilities.end());
    }
  }
  device.run([&](auto& context) {
    if constexpr (std::is_same_v<decltype(context), CudaContext&>)
      out.graphs = context.graphs ? context.graphs->started() : 0;
  });
  return out;
}

TEST_CASE("steps on a GPU: decoding line by line with graphs has the same bits, and most steps are graphs") {
  const auto check = [](const RandomModel& f, Precision precision) {
    const Decoded plain = decode(f, precision, false), graphs = decode(f, precision, true);
    CHECK(plain.graphs == 0);
    CHECK(graphs.graphs >= 50);  // of 60
    CHECK(graphs.ids == plain.ids);
    CHECK(graphs.log_probabilities == plain.log_probabilities);
  };
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    CAPTURE(static_cast<int>(precision));
    check(RandomModel(83, 2, 5), precision);
  }
  for (const auto& [name, choose] : kinds_of_transformer) {
    CAPTURE(name);
    check(RandomModel(83, 2, 5, 40, choose), Precision::float32);
  }
}

#ifdef HEED_EMULATED_GPU
TEST_CASE("steps on a GPU: searches make graphs, and find the same without them") {
  const RandomModel f(83, 2, 5);
  const auto translate = [&](int beam_size) {
    Decoder gpu(*f.model, *f.parameters, Precision::float32, f.packed());
    std::vector<std::vector<Hypothesis>> out;
    for (int sentence = 0; sentence < 4; ++sentence) {
      PackedIds source;
      source.append(random_sentence(sentence + 3));
      out.push_back(gpu.translate(source, {.beam_size = beam_size, .n_best = beam_size, .max_output_length = 12})[0]);
    }
    return out;
  };
  for (const int beam_size : {1, 4}) {
    CAPTURE(beam_size);
    const int before = emulation::graphs_made();
    const auto found = translate(beam_size);
    CHECK(emulation::graphs_made() > before);
    emulation::refuse_graphs(true);
    const auto expected = translate(beam_size);
    emulation::refuse_graphs(false);
    for (std::size_t s = 0; s < found.size(); ++s) {
      REQUIRE(found[s].size() == expected[s].size());
      for (std::size_t i = 0; i < found[s].size(); ++i) {
        CHECK(found[s][i].ids == expected[s][i].ids);
        CHECK(found[s][i].log_probabilities == expected[s][i].log_probabilities);
      }
    }
  }
}

TEST_CASE("steps on a GPU: after a batch that does not fit into its memory, smaller ones do") {
  CudaDevice device(0, Precision::float32);
  DecoderCache<float> cache(device.context(), 2, 64, 4);
  emulation::limit_gpu_memory(std::size_t{8} << 20);
  const auto begin = [&](int tokens) {
    const std::vector<std::int32_t> offsets{0, tokens};
    cache.begin({offsets});
    device.context().arena.reset();
    cache.set_memory(0, device.context().arena.tensor<float>({std::min(tokens, 500), 128}));
  };
  CHECK_THROWS_AS(begin(10'000), OutOfGpuMemory);
  CHECK_NOTHROW(begin(500));
  CHECK_NOTHROW(begin(10));
  emulation::limit_gpu_memory(std::numeric_limits<std::size_t>::max());
}
#endif

}  // namespace
}  // namespace heed
