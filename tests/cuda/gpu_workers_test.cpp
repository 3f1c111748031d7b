#include "heed/train/gpu_workers.h"

#include <cmath>
#include <functional>

#include "../dist/thread_ranks.h"
#include "heed/tensor/cuda_device.h"
#include "heed/train/teachers.h"
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

/// Computes `updates` updates of a model on `workers`, from two batches each.
void train_on(TrainingWorkers& workers, const OptimizerSettings& settings, const ParallelCorpus& corpus, int updates,
              Trained& to, std::int64_t batch_tokens = 150) {
  const Optimizer optimizer(settings, to.parameters.layout(), to.memory);
  const auto step = workers.make_update_step({optimizer, to.memory, to.parameters, &to.smoothed, 0.1});
  EpochBatches batches(corpus, {.target_tokens = batch_tokens}, 1);
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
  to.evaluated = workers.evaluate(to.parameters, corpus, shards, nullptr);
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
  return worst;
}

TEST_CASE("training on a GPU computes what training on a CPU computes, and the same bits every time") {
  const ParallelCorpus corpus = mirrored(60);
  for (const auto& [kind, normalization] :
       {std::pair(OptimizerKind::adam, Normalization::layer), {OptimizerKind::sgd, Normalization::batch}}) {
    CAPTURE(static_cast<int>(kind));
    TransformerConfig config = small_config();
    config.dropout = 0.1;
    config.normalization = normalization;  // that of a batch has running averages
    const Transformer<float> model(config);
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

TEST_CASE("training on a GPU in bfloat16 computes nearly what training on a CPU in bfloat16 computes") {
  const ParallelCorpus corpus = mirrored(60);
  using enum FeedForwardActivation;
  struct Kind {
    FeedForwardActivation activation = relu;
    PositionEncoding positions = PositionEncoding::interleaved;
    AttentionScoring attention = AttentionScoring::dot;
    CrossAttention cross_attention = CrossAttention::last;
    DecoderAutoreg autoreg = DecoderAutoreg::self_attention;
    NormPlacement norm = NormPlacement::post;
    double ffn_dropout = 0, stochastic_depth = 0;
  };
  for (const Kind& kind : {Kind{},
                           {.norm = NormPlacement::pre, .ffn_dropout = 0.1, .stochastic_depth = 0.1},
                           {.activation = gelu, .positions = PositionEncoding::alibi},
                           {.activation = swiglu, .positions = PositionEncoding::rotary},
                           {.positions = PositionEncoding::relative, .cross_attention = CrossAttention::mix},
                           {.positions = PositionEncoding::t5, .autoreg = DecoderAutoreg::average},
                           {.attention = AttentionScoring::additive}}) {
    CAPTURE(static_cast<int>(kind.activation));
    CAPTURE(static_cast<int>(kind.positions));
    CAPTURE(static_cast<int>(kind.attention));
    CAPTURE(kind.ffn_dropout);
    TransformerConfig config = small_config();
    config.ffn_activation = kind.activation;
    config.positions = kind.positions;
    config.attention = kind.attention;
    config.cross_attention = kind.cross_attention;
    config.decoder_autoreg = kind.autoreg;
    config.norm = kind.norm;
    config.ffn_dropout = kind.ffn_dropout;
    config.stochastic_depth = kind.stochastic_depth;
    config.dim_aan = kind.autoreg == DecoderAutoreg::average ? 24 : 0;
    config.attention_dropout = 0.1;
    const Transformer<float> model(config);
    OptimizerSettings settings;
    settings.kind = OptimizerKind::sgd;
    Trained cpu(model.layout()), gpu(model.layout());
    ThreadPool pool(2);
    GradientWorkers cpu_workers(model.layout(), loss_of(model), Precision::bfloat16, pool);
    train_on(cpu_workers, settings, corpus, 1, cpu);
    CudaDevice device(0, Precision::bfloat16);
    GpuWorkers gpu_workers(model.layout(), loss_of(model), device.context());
    train_on(gpu_workers, settings, corpus, 1, gpu);
    CHECK(gpu.results[0].sums.loss == doctest::Approx(cpu.results[0].sums.loss).epsilon(1e-3));
    // The gradient: what an update of stochastic gradient descent has subtracted.
    const Trained start(model.layout());
    double difference = 0, length = 0;
    for (std::size_t i = 0; i < start.parameters.flat().size(); ++i) {
      difference += std::pow(gpu.parameters.flat()[i] - cpu.parameters.flat()[i], 2);
      length += std::pow(cpu.parameters.flat()[i] - start.parameters.flat()[i], 2);
    }
    CHECK(length > 0);
    CHECK(std::sqrt(difference / length) < 0.01);
  }
}

TEST_CASE("training on a GPU learns of teachers what training on a CPU does") {
  const TemporaryFolder folder("heed_gpu_teachers");
  const auto checkpoint = [](const TransformerConfig& config) {
    auto model = std::make_shared<const Transformer<float>>(config);
    ParameterValues<float> parameters(model->layout());
    parameters.initialise(7);
    return Checkpoint{std::move(model), std::move(parameters), letters(), letters()};
  };
  TransformerConfig wide = small_config();
  wide.dim_emb = 24;
  wide.output_bias = true;
  save_checkpoint(folder / "a.h5", checkpoint(small_config()));
  save_checkpoint(folder / "b.h5", checkpoint(wide));
  const Checkpoint student = checkpoint(small_config());
  const Model<float>& model = *student.model;
  const ParallelCorpus corpus = mirrored(60);
  OptimizerSettings settings;
  settings.epsilon = 1e-3;
  Trained cpu(model.layout()), gpu(model.layout()), plain(model.layout());
  ThreadPool pool(2);
  CudaDevice device(0, Precision::float32);
  Teachers teachers({folder / "a.h5", folder / "b.h5"}, student, 100);
  GradientWorkers cpu_workers(model.layout(), teachers.loss_of(model, 0.7), Precision::float32, pool);
  train_on(cpu_workers, settings, corpus, 2, cpu);
  GradientWorkers plain_workers(model.layout(), loss_of(model), Precision::float32, pool);
  train_on(plain_workers, settings, corpus, 2, plain);
  Teachers on_gpu({folder / "a.h5", folder / "b.h5"}, student, 100, 0);
  GpuWorkers gpu_workers(model.layout(), on_gpu.loss_of(model, 0.7), device.context());
  train_on(gpu_workers, settings, corpus, 2, gpu);
  // Graphs of a CPU have these teachers, too.
  Trained beside(model.layout());
  GradientWorkers beside_workers(model.layout(), on_gpu.loss_of(model, 0.7), Precision::float32, pool);
  train_on(beside_workers, settings, corpus, 2, beside);
  CHECK(std::ranges::equal(beside.parameters.flat(), cpu.parameters.flat()));
  for (std::size_t i = 0; i < cpu.results.size(); ++i) {
    CAPTURE(i);
    CHECK(gpu.results[i].applied);
    CHECK(gpu.results[i].sums.loss == doctest::Approx(cpu.results[i].sums.loss).epsilon(1e-4));
    CHECK(gpu.results[i].gradient_norm == doctest::Approx(cpu.results[i].gradient_norm).epsilon(1e-3));
  }
  CHECK(largest_difference(gpu.parameters.flat(), cpu.parameters.flat()) < 2e-3);
  CHECK(largest_difference(gpu.parameters.flat(), plain.parameters.flat()) > 1e-2);
}

TEST_CASE("training on a GPU: an update that is not finite changes nothing") {
  const Transformer<float> model(small_config());
  const ParallelCorpus corpus = mirrored(20);
  CudaDevice device(0, Precision::float32);
  const BatchLoss broken = [&](Graph<float>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums) {
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

TEST_CASE("training on a GPU: updates that are submitted before the results of others are known") {
  TransformerConfig config = small_config();
  config.dropout = 0.1;
  config.normalization = Normalization::batch;
  const Transformer<float> model(config);
  const ParallelCorpus corpus = mirrored(60);
  EpochBatches batches(corpus, {.target_tokens = 150}, 1);
  batches.prepare(0);
  OptimizerSettings settings;
  settings.clip_norm = 0.5;
  struct Run {
    explicit Run(const Transformer<float>& model) : trained(model.layout()) {}
    Trained trained;
    std::vector<UpdateStep::Result> results;
  };
  bool broken = false;
  const BatchLoss loss = [&](Graph<float>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums) {
    LossOptions own = options;
    if (broken) own.scale = std::numeric_limits<double>::infinity();
    return model.loss(graph, batch, own, sums);
  };
  // Computes four updates, of which number `bad`, counted from 0, is spoilt at first.
  const auto train = [&](bool together, int bad) {
    CudaDevice device(0, Precision::float32);
    GpuWorkers workers(model.layout(), loss, device.context());
    auto run = std::make_unique<Run>(model);
    Trained& trained = run->trained;
    const Optimizer optimizer(settings, model.layout(), trained.memory);
    const auto step = workers.make_update_step({optimizer, trained.memory, trained.parameters, &trained.smoothed, 0.1});
    REQUIRE(step->most_submitted() == 2);
    const auto submit = [&](int i) {
      broken = i == bad;
      std::vector<Shard> shards;
      cut_into_shards(corpus, batches[i % batches.size()], shards);
      step->submit(corpus, shards, {.label_smoothing = 0.1}, {.seed = 5, .update = static_cast<std::uint64_t>(i)},
                   i + 1, 0.01);
    };
    for (int next = 0, submitted = 0; next < 4 || submitted > 0;) {
      if (next < 4 && submitted < (together ? 2 : 1)) {
        submit(next++);
        ++submitted;
        continue;
      }
      const UpdateStep::Result result = step->collect();
      if (result.applied) {
        run->results.push_back(result);
        --submitted;
        continue;
      }
      // What was submitted after it is given up, so that it is submitted again.
      CHECK(next - submitted == bad);
      CHECK_FALSE(std::isfinite(result.gradient_norm));
      next -= submitted;
      submitted = 0;
      bad = -1;
    }
    step->gather_parameters();
    step->gather_memory();
    return run;
  };
  const auto single = train(false, -1);
  REQUIRE(single->results.size() == 4);
  for (const int bad : {-1, 0, 1, 3}) {
    CAPTURE(bad);
    const auto together = train(true, bad);
    REQUIRE(together->results.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(together->results[i].gradient_norm == single->results[i].gradient_norm);
      CHECK(together->results[i].gradient_norm > settings.clip_norm);
      CHECK(together->results[i].sums.loss == single->results[i].sums.loss);
      CHECK(together->results[i].sums.target_tokens == single->results[i].sums.target_tokens);
    }
    CHECK(std::ranges::equal(together->trained.parameters.flat(), single->trained.parameters.flat()));
    CHECK(std::ranges::equal(together->trained.smoothed.flat(), single->trained.smoothed.flat()));
    for (const auto& [name, values] : together->trained.memory)
      CHECK(std::ranges::equal(values.flat(), single->trained.memory.at(name).flat()));
  }
}

/// Trains on ranks that are threads with a GPU each. `sum_of` makes what adds their gradients up.
std::vector<std::unique_ptr<Trained>> train_on_ranks(
    int size, const Transformer<float>& model, const ParallelCorpus& corpus,
    const std::function<std::unique_ptr<GpuSum>(Communicator&)>& sum_of) {
  OptimizerSettings settings;
  settings.epsilon = 1e-3;
  settings.clip_norm = 0.5;
  std::vector<std::unique_ptr<Trained>> out(static_cast<std::size_t>(size));
  run_ranks(size, [&](Communicator& ranks) {
    auto& own = out[static_cast<std::size_t>(ranks.rank())] = std::make_unique<Trained>(model.layout());
    CudaDevice device(0, Precision::float32);
    const std::unique_ptr<GpuSum> sum = sum_of(ranks);
    GpuWorkers workers(model.layout(), loss_of(model), device.context(), ranks, sum.get());
    train_on(workers, settings, corpus, 3, *own, 300);
  });
  return out;
}

TEST_CASE("training on the GPUs of several ranks computes what one GPU computes, with the same bits on all of them") {
  TransformerConfig config = small_config();
  config.dropout = 0.1;
  const Transformer<float> model(config);
  const ParallelCorpus corpus = mirrored(120);
  const auto by_hosts = [](Communicator& ranks) -> std::unique_ptr<GpuSum> {
    return ranks.size() == 1 ? nullptr : std::make_unique<HostSum>(ranks);
  };
  const auto alone = std::move(train_on_ranks(1, model, corpus, by_hosts)[0]);
  for (const int size : {2, 3}) {  // a batch has two shards, so that a third rank has none
    CAPTURE(size);
    const auto ranks = train_on_ranks(size, model, corpus, by_hosts),
               again = train_on_ranks(size, model, corpus, by_hosts);
    for (const auto& rank : ranks) {
      CHECK(std::ranges::equal(rank->parameters.flat(), ranks[0]->parameters.flat()));
      CHECK(std::ranges::equal(rank->smoothed.flat(), ranks[0]->smoothed.flat()));
      for (const auto& [name, values] : rank->memory)
        CHECK(std::ranges::equal(values.flat(), ranks[0]->memory.at(name).flat()));
      for (std::size_t i = 0; i < alone->results.size(); ++i) {
        CHECK(rank->results[i].applied);
        CHECK(rank->results[i].gradient_norm == ranks[0]->results[i].gradient_norm);
        CHECK(rank->results[i].sums.tokens == alone->results[i].sums.tokens);
        CHECK(rank->results[i].sums.loss == doctest::Approx(alone->results[i].sums.loss).epsilon(1e-5));
        CHECK(rank->results[i].gradient_norm == doctest::Approx(alone->results[i].gradient_norm).epsilon(1e-4));
      }
      CHECK(rank->evaluated.tokens == alone->evaluated.tokens);
      CHECK(rank->evaluated.negative_log_likelihood ==
            doctest::Approx(alone->evaluated.negative_log_likelihood).epsilon(1e-5));
      CHECK(largest_difference(rank->parameters.flat(), alone->parameters.flat()) < 2e-4);
    }
    CHECK(std::ranges::equal(ranks[0]->parameters.flat(), again[0]->parameters.flat()));
    CHECK(largest_difference(ranks[0]->parameters.flat(), Trained(model.layout()).parameters.flat()) > 0.01);
  }
}

TEST_CASE("ranks whose GPUs no longer have the same parameters stop") {
  struct BrokenSum : GpuSum {
    explicit BrokenSum(int own) : rank(own) {}
    void add_up(CudaContext& gpu, std::span<float> numbers) override {
      fill_on_gpu(gpu, numbers.data(), std::ssize(numbers), static_cast<float>(1 + rank));
    }
    std::string name() const override { return "nothing"; }
    int rank;
  };
  const Transformer<float> model(small_config());
  const ParallelCorpus corpus = mirrored(60);
  run_ranks(2, [&](Communicator& ranks) {
    Trained own(model.layout());
    CudaDevice device(0, Precision::float32);
    BrokenSum sum(ranks.rank());
    GpuWorkers workers(model.layout(), loss_of(model), device.context(), ranks, &sum);
    OptimizerSettings settings;
    settings.epsilon = 1;
    const std::string message = message_of_rank([&] { train_on(workers, settings, corpus, 1, own); });
    CHECK(message.starts_with(ranks.rank() == 0 ? "the parameters of the ranks are no longer the same" : "-"));
  });
}

TEST_CASE("a GPU that is not there is named") {
  CHECK_THROWS_WITH_AS(CudaDevice(7, Precision::float32),
                       "there is no GPU cuda:7: this machine has 1, counted from cuda:0", Error);
}

}  // namespace
}  // namespace heed
