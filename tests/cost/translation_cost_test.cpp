#include "heed/cost/translation_cost.h"

#include <doctest/doctest.h>

#include "heed/cost/kernel_timer.h"

using namespace heed;

namespace {

/// A step model that accepts all calls and computes nothing.
class Silent : public StepModel {
 public:
  std::int64_t vocabulary() const override { return 9; }
  void start(const PackedIds&) override {}
  Tensor<float> step(std::span<const std::int32_t>) override { return {}; }
  void step(std::span<const std::int32_t>, CpuContext&, std::int64_t, float*, std::int32_t*) override {}
  void reorder(std::span<const std::int32_t>) override {}
  void share_with(ThreadTeam*) override {}
};

}  // namespace

TEST_CASE("what a search asks for is counted, row by row") {
  CountedStepModel model(std::make_unique<Silent>());
  CHECK(model.vocabulary() == 9);
  PackedIds source;
  source.append(std::vector<std::int32_t>{4, 5, 3});
  source.append(std::vector<std::int32_t>{3});
  model.start(source);
  Arena arena;
  CpuContext device{arena};
  const std::vector<std::int32_t> tokens(4, 2);
  model.step(std::span(tokens).first(2), device, 5, nullptr, nullptr);
  model.reorder(std::vector<std::int32_t>{0, 0, 1});  // now two rows belong to the first sentence, one to the second
  model.step(std::span(tokens).first(3), device, 7, nullptr, nullptr);
  model.reorder(std::vector<std::int32_t>{2});
  model.step(std::span(tokens).first(1));
  const DecodingCounts counts = model.take();
  CHECK(counts.batches == 1);
  CHECK(counts.sentences == 2);
  CHECK(counts.tokens.source == 3 + 1);
  CHECK(counts.tokens.encoder_pairs == 9 + 1);
  CHECK(counts.tokens.target == 2 + 3 + 1);
  CHECK(counts.tokens.decoder_pairs == 2 * 1 + 3 * 2 + 1 * 3);
  CHECK(counts.tokens.cross_pairs == (3 + 1) + (3 + 3 + 1) + 1);
  CHECK(counts.steps == std::map<std::int64_t, std::int64_t>{{1, 1}, {2, 1}, {3, 1}});
  CHECK(counts.k == 7);
  CHECK(counts.most_source == 4);
  CHECK(counts.decoder_keys == 2 + 5 + 3);
  CHECK(counts.most_keys == 5);
  CHECK(model.take().tokens.target == 0);
}

TEST_CASE("counts add up") {
  DecodingCounts one, other;
  one.steps = {{4, 2}};
  one.k = 3;
  other.steps = {{4, 1}, {5, 1}};
  other.most_keys = 8;
  other.batches = 2;
  one += other;
  CHECK(one.steps == std::map<std::int64_t, std::int64_t>{{4, 3}, {5, 1}});
  CHECK(one.k == 3);
  CHECK(one.most_keys == 8);
  CHECK(one.batches == 2);
}

TEST_CASE("a part of a cost is told with what it is of") {
  CHECK(describe({"attention", 0.5, 2e9, 0}, 2, 1000, "piece") == "25.0 %: 2 Mflop a piece at 4 Gflop/s");
  CHECK(describe({"optimiser", 0.5, 0, 4e9}, 1, 1000, "token") == "50.0 %: 4e+03 kB a token at 8 GB/s");
  CHECK(describe({"waiting", 0.1, 0, 0}, 1, 10, "piece") == "10.0 %");
}

TEST_CASE("the timer gives the middle of what kernels say, of all threads") {
  ThreadPool pool(2);
  KernelTimer timer(pool);
  const std::size_t first = timer.add([](int thread) { return thread == 0 ? 1.0 : 3.0; });
  const std::size_t second = timer.add([](int) { return 5.0; });
  timer.run(0);
  CHECK(timer.seconds(first) == 2);
  CHECK(timer.seconds(second) == 5);
  CHECK(timer.barrier_seconds() > 0);
}
