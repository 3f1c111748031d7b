#include "heed/train/gpu_workers.h"

#include "heed/tensor/cuda_device.h"
#include "heed/train/update_step.h"
#include "small_run.h"

namespace heed {
namespace {

/// What a few updates of a small model leave.
struct Trained {
  explicit Trained(const ParameterLayout& layout) : parameters(layout), smoothed(layout) {
    parameters.initialise(3);
    std::ranges::copy(parameters.flat(), smoothed.flat().begin());
  }

  ParameterValues<float> parameters, smoothed;
  NamedParameterValues memory;
  std::vector<UpdateStep::Result> results;
  LossSums evaluated;
};

/// Computes `updates` updates of a model on `workers`.
void train_on(TrainingWorkers& workers, const OptimizerSettings& settings, const ParallelCorpus& corpus, int updates,
              Trained& to) {
  const Optimizer optimizer(settings, to.parameters.layout(), to.memory);
  const auto step = workers.make_update_step({optimizer, to.memory, to.parameters, &to.smoothed, 0.1});
  EpochBatches batches(corpus, {.target_tokens = 150}, 1);
  batches.prepare(0);
  for (int i = 0; i < updates; ++i) {
    std::vector<Shard> shards;
    for (int k = 0; k < 2; ++k) cut_into_shards(corpus, batches[(2 * i + k) % batches.size()], shards);
    to.results.push_back(step->run(corpus, shards, {.label_smoothing = 0.1},
                                   {.seed = 5, .update = static_cast<std::uint64_t>(i)}, i + 1, 0.01));
  }
  step->gather_parameters();
  step->gather_memory();
  std::vector<Shard> shards;
  cut_into_shards(corpus, batches[0], shards);
  to.evaluated = workers.evaluate(to.parameters, corpus, shards);
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
  return worst;
}

TEST_CASE("training on a GPU computes what training on a CPU computes, and the same bits every time") {
  TransformerConfig config = small_config();
  config.dropout = 0.1;
  const Transformer<float> model(config);
  const ParallelCorpus corpus = mirrored(60);
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::sgd}) {
    CAPTURE(static_cast<int>(kind));
    OptimizerSettings settings;
    settings.kind = kind;
    settings.momentum = 0.9;
    settings.epsilon = 1e-3;  // so that a gradient of nearly 0 is not rounded to one or the other direction
    settings.clip_norm = 0.5;
    Trained cpu(model.layout()), gpu(model.layout()), again(model.layout());
    ThreadPool pool(2);
    GradientWorkers cpu_workers(model.layout(), loss_of(model), Precision::float32, pool);
    train_on(cpu_workers, settings, corpus, 2, cpu);
    for (Trained* const trained : {&gpu, &again}) {
      CudaDevice device(0, Precision::float32);
      GpuWorkers gpu_workers(model.layout(), loss_of(model), device.context());
      train_on(gpu_workers, settings, corpus, 2, *trained);
    }
    for (std::size_t i = 0; i < cpu.results.size(); ++i) {
      CAPTURE(i);
      CHECK(gpu.results[i].applied);
      CHECK(gpu.results[i].sums.tokens == cpu.results[i].sums.tokens);
      CHECK(gpu.results[i].sums.loss == doctest::Approx(cpu.results[i].sums.loss).epsilon(1e-4));
      CHECK(gpu.results[i].gradient_norm == doctest::Approx(cpu.results[i].gradient_norm).epsilon(1e-3));
    }
    CHECK(gpu.evaluated.negative_log_likelihood ==
          doctest::Approx(cpu.evaluated.negative_log_likelihood).epsilon(1e-4));
    CHECK(largest_difference(gpu.parameters.flat(), cpu.parameters.flat()) < 2e-3);
    CHECK(largest_difference(gpu.smoothed.flat(), cpu.smoothed.flat()) < 2e-3);
    REQUIRE(gpu.memory.size() == cpu.memory.size());
    for (const auto& [name, values] : gpu.memory) {
      CAPTURE(name);
      CHECK(largest_difference(values.flat(), cpu.memory.at(name).flat()) < 1e-3);
      CHECK(std::ranges::equal(values.flat(), again.memory.at(name).flat()));
    }
    CHECK(std::ranges::equal(gpu.parameters.flat(), again.parameters.flat()));
  }
}

TEST_CASE("training on a GPU: an update that is not finite changes nothing") {
  const Transformer<float> model(small_config());
  const ParallelCorpus corpus = mirrored(20);
  CudaDevice device(0, Precision::float32);
  const BatchLoss broken = [&](Graph<float>& graph, const Batch& batch, const LossOptions& options, LossSums* sums) {
    LossOptions infinite = options;
    infinite.scale = std::numeric_limits<double>::infinity();
    return model.loss(graph, batch, infinite, sums);
  };
  GpuWorkers workers(model.layout(), broken, device.context());
  Trained trained(model.layout());
  const ParameterValues<float> before = trained.parameters;
  const Optimizer optimizer({}, model.layout(), trained.memory);
  const auto step = workers.make_update_step({optimizer, trained.memory, trained.parameters});
  EpochBatches batches(corpus, {.target_tokens = 100}, 1);
  batches.prepare(0);
  std::vector<Shard> shards;
  cut_into_shards(corpus, batches[0], shards);
  CHECK_FALSE(step->run(corpus, shards, {}, {}, 1, 0.01).applied);
  step->gather_parameters();
  CHECK(std::ranges::equal(trained.parameters.flat(), before.flat()));
  CHECK_THROWS_WITH_AS(step->run(corpus, {}, {}, {}, 1, 0.01), "internal: an update without target tokens", Error);
}

TEST_CASE("a GPU that is not there is named") {
  CHECK_THROWS_WITH_AS(CudaDevice(7, Precision::float32),
                       "there is no GPU cuda:7: this machine has 1, counted from cuda:0", Error);
}

}  // namespace
}  // namespace heed
