#include "heed/train/gradient_workers.h"

#include <algorithm>
#include <cmath>

#include "../dist/thread_ranks.h"
#include "heed/train/update_step.h"
#include "small_run.h"

using namespace heed;

namespace {

/// Cuts the pairs of the corpus, in the order `order`, into `parts` shards.
std::vector<Shard> shards_of(const ParallelCorpus& corpus, const std::vector<std::int32_t>& order, std::size_t parts) {
  std::vector<Shard> shards;
  const std::size_t size = (order.size() + parts - 1) / parts;
  for (std::size_t begin = 0; begin < order.size(); begin += size) {
    const auto pairs = std::span(order).subspan(begin, std::min(size, order.size() - begin));
    std::int64_t tokens = 0;
    for (const std::int32_t pair : pairs) tokens += corpus.target_tokens(pair);
    shards.push_back({pairs, tokens, static_cast<std::int64_t>(begin), std::ssize(shards)});
  }
  return shards;
}

struct Outcome {
  std::vector<float> gradient;
  double norm = 0;
  LossSums sums;
};

Outcome gradient_of(int threads, std::size_t parts, double dropout = 0, Communicator& ranks = no_other_ranks(),
                    Precision precision = Precision::float32) {
  const Transformer<float> model(small_config(dropout));
  ParameterValues<float> parameters(model.layout());
  parameters.initialise(3);
  const ParallelCorpus corpus = mirrored(60);
  const auto batches = batches_in_order(corpus, {.target_tokens = INT64_MAX});
  ThreadPool pool(threads);
  GradientWorkers workers(model.layout(), loss_of(model), precision, pool, ranks);
  Outcome out;
  // The second round checks that clear() has set all gradients to zero.
  for (int round = 0; round < 2; ++round) {
    workers.clear(workers.slice());
    out.sums = workers.compute(parameters, corpus, shards_of(corpus, batches[0], parts),
                               {.label_smoothing = 0.1, .scale = 1.0 / static_cast<double>(corpus.target_tokens())},
                               {.seed = 5, .update = 9});
    out.norm = workers.reduce();
  }
  workers.gather(workers.gradient());
  const auto flat = workers.gradient().flat();
  out.gradient.assign(flat.begin(), flat.end());
  return out;
}

void check_equal(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.gradient.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a.gradient[i]) - static_cast<double>(b.gradient[i])));
  CHECK(worst < 1e-6 * a.norm);
  CHECK(a.norm == doctest::Approx(b.norm).epsilon(1e-5));
  CHECK(a.sums.loss == doctest::Approx(b.sums.loss).epsilon(1e-6));
  CHECK(a.sums.tokens == b.sums.tokens);
}

void check_same_bits(const Outcome& a, const Outcome& b) {
  CHECK(a.gradient == b.gradient);
  CHECK(a.norm == b.norm);
  CHECK(a.sums.loss == b.sums.loss);
  CHECK(a.sums.tokens == b.sums.tokens);
}

}  // namespace

TEST_CASE("the gradient of a batch does not depend on shards and threads") {
  const Outcome whole = gradient_of(1, 1);
  CHECK(whole.norm > 0.01);
  check_equal(whole, gradient_of(1, 3));
  check_equal(whole, gradient_of(3, 3));
  check_equal(whole, gradient_of(3, 1));
  check_equal(whole, gradient_of(2, 7));
}

TEST_CASE("with dropout, the gradient does not depend on shards") {
  check_equal(gradient_of(1, 4, 0.3), gradient_of(1, 2, 0.3));
  CHECK(gradient_of(1, 4, 0.3).sums.loss != gradient_of(1, 4, 0.2).sums.loss);
}

TEST_CASE("every number of threads gives the same bits") {
  for (const std::size_t parts : {1, 4, 7}) {
    CAPTURE(parts);
    const Outcome one = gradient_of(1, parts, 0.3);
    for (const int threads : {2, 3, 4, 9}) {
      CAPTURE(threads);
      check_same_bits(gradient_of(threads, parts, 0.3), one);
    }
  }
}

TEST_CASE("in bfloat16, too, every number of threads gives the same bits") {
  const auto gradient = [](int threads) { return gradient_of(threads, 7, 0.3, no_other_ranks(), Precision::bfloat16); };
  const Outcome one = gradient(1);
  CHECK(one.gradient != gradient_of(1, 7, 0.3).gradient);
  for (const int threads : {2, 9}) check_same_bits(gradient(threads), one);
}

TEST_CASE("in bfloat16, where all parts share prepared weights, every call has the weights of that time") {
  const Transformer<float> model(small_config());
  ParameterValues<float> first(model.layout()), second(model.layout());
  first.initialise(3);
  second.initialise(4);
  const ParallelCorpus corpus = mirrored(60);
  const auto batches = batches_in_order(corpus, {.target_tokens = INT64_MAX});
  const std::vector<Shard> shards = shards_of(corpus, batches[0], 3);
  ThreadPool pool(2);
  // The losses of parameters in training and in validation.
  const auto training = [&](GradientWorkers& workers, ParameterValues<float>& parameters) {
    return workers.compute(parameters, corpus, shards, {}, {}).loss;
  };
  const auto validation = [&](GradientWorkers& workers, ParameterValues<float>& parameters) {
    return workers.evaluate(parameters, corpus, shards, nullptr).loss;
  };
  // The same, computed by workers that have seen no other parameters.
  const auto alone = [&](auto loss, ParameterValues<float>& parameters) {
    GradientWorkers workers(model.layout(), loss_of(model), Precision::bfloat16, pool);
    return loss(workers, parameters);
  };
  const double of_first = alone(training, first), of_second = alone(training, second);
  CHECK(of_first != of_second);
  GradientWorkers workers(model.layout(), loss_of(model), Precision::bfloat16, pool);
  CHECK(training(workers, first) == of_first);
  CHECK(validation(workers, second) == alone(validation, second));
  CHECK(training(workers, first) == of_first);
  std::ranges::copy(second.flat(), first.flat().begin());
  CHECK(training(workers, first) == of_second);
}

TEST_CASE("every number of ranks gives the same bits") {
  for (const std::size_t parts : {1, 4, 7}) {
    CAPTURE(parts);
    const Outcome one = gradient_of(1, parts, 0.3);
    for (const int size : {2, 3, 4, 9}) {
      CAPTURE(size);
      std::vector<Outcome> all(static_cast<std::size_t>(size));
      run_ranks(size, [&](Communicator& ranks) {
        all[static_cast<std::size_t>(ranks.rank())] = gradient_of(size == 3 ? 2 : 1, parts, 0.3, ranks);
      });
      for (const Outcome& each : all) check_same_bits(each, one);
    }
  }
}

TEST_CASE("evaluation has no dropout and leaves the gradient alone") {
  const Transformer<float> model(small_config(0.5));
  ParameterValues<float> parameters(model.layout());
  parameters.initialise(3);
  const ParallelCorpus corpus = mirrored(60);
  const auto batches = batches_in_order(corpus, {.target_tokens = INT64_MAX});
  ThreadPool pool(2);
  GradientWorkers workers(model.layout(), loss_of(model), Precision::float32, pool);
  workers.compute(parameters, corpus, shards_of(corpus, batches[0], 2), {}, {});
  const double norm = workers.reduce();
  const LossSums one = workers.evaluate(parameters, corpus, shards_of(corpus, batches[0], 5), nullptr);
  const LossSums two = workers.evaluate(parameters, corpus, shards_of(corpus, batches[0], 2), nullptr);
  CHECK(one.negative_log_likelihood == doctest::Approx(two.negative_log_likelihood).epsilon(1e-6));
  CHECK(workers.reduce() == norm);
}

TEST_CASE("an error in a shard comes out") {
  const Transformer<float> model(small_config());
  ParameterValues<float> parameters(model.layout());
  ParallelCorpus corpus;
  corpus.add(std::vector<std::int32_t>{4}, std::vector<std::int32_t>{999}, 1);
  const std::vector<std::int32_t> order = {0};
  ThreadPool pool(2);
  GradientWorkers workers(model.layout(), loss_of(model), Precision::float32, pool);
  CHECK_THROWS_AS(workers.compute(parameters, corpus, shards_of(corpus, order, 1), {}, {}), Error);
}

TEST_CASE("an update moves running averages by a tenth; the gradient's norm and the optimiser leave them out") {
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    TransformerConfig config = small_config();
    config.normalization = Normalization::batch;
    const Transformer<float> model(config);
    const ParameterLayout& layout = model.layout();
    ParameterValues<float> parameters(layout);
    parameters.initialise(3);
    const ParallelCorpus corpus = mirrored(60);
    const auto batches = batches_in_order(corpus, {.target_tokens = INT64_MAX});
    const std::vector<Shard> shards = shards_of(corpus, batches[0], 4);
    const DropoutKey key{.seed = 5, .update = 9};

    // The same gradient and the same sums, computed without an update.
    ThreadPool one(1), pool(threads);
    GradientWorkers alone(layout, loss_of(model), Precision::float32, one);
    alone.compute(parameters, corpus, shards, {.scale = 1.0 / static_cast<double>(corpus.target_tokens())}, key);
    const double norm = alone.reduce();
    const auto sums = std::as_const(alone.gradient()).flat();
    double squares = 0;
    for (const float g : sums.first(static_cast<std::size_t>(layout.trained_size())))
      squares += static_cast<double>(g) * static_cast<double>(g);
    CHECK(norm == doctest::Approx(std::sqrt(squares)));

    const ParameterValues<float> before = parameters;
    OptimizerSettings settings;
    settings.kind = OptimizerKind::adamw;
    settings.weight_decay = 10;
    settings.clip_norm = norm / 2;
    NamedParameterValues memory;
    const Optimizer optimizer(settings, layout, memory);
    GradientWorkers workers(layout, loss_of(model), Precision::float32, pool);
    CpuUpdateStep step(workers, {optimizer, memory, parameters}, pool);
    const UpdateStep::Result result = step.run(corpus, shards, {}, key, 1, 0.01);
    CHECK(result.applied);
    CHECK(result.gradient_norm == doctest::Approx(norm).epsilon(1e-5));
    CHECK(parameters.flat()[0] != before.flat()[0]);
    for (const ParameterInfo& info : layout.running()) {
      CAPTURE(info.name);
      const auto begin = static_cast<std::size_t>(info.offset), size = static_cast<std::size_t>(info.shape.size());
      const double tokens = sums[begin + size];
      CHECK(tokens == (info.name.starts_with("encoder") ? corpus.source_tokens() : corpus.target_tokens()));
      for (std::size_t i = begin; i < begin + size; ++i) {
        CHECK(parameters.flat()[i] == doctest::Approx(0.9 * before.flat()[i] + 0.1 * sums[i] / tokens).epsilon(1e-5));
        for (const auto& [name, moment] : memory) CHECK(moment.flat()[i] == 0);
      }
      CHECK(parameters.flat()[begin + size] == 0);
    }
    for (const float g : workers.gradient().flat()) CHECK(g == 0);
  }
}
