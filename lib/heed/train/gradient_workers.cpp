#include "heed/train/gradient_workers.h"

#include <algorithm>
#include <cmath>

#include "heed/ops/optimizer_kernels.h"

namespace heed {

struct GradientWorkers::Worker {
  Worker(const ParameterLayout& layout, Precision precision) : device{arena, precision}, gradient(layout) {}

  /// Empties this thread's autograd graph and returns it. The graph reads `parameters` and adds gradients to
  /// `gradient`. Constructs a new Graph only when `parameters` is another array than in the previous call.
  Graph<float>& graph(ParameterValues<float>& parameters) {
    if (&parameters != graph_parameters) {
      training = std::make_unique<Graph<float>>(device, parameters, gradient);
      graph_parameters = &parameters;
    }
    training->reset();
    return *training;
  }

  Arena arena;
  CpuContext device;
  ParameterValues<float> gradient;
  std::unique_ptr<Graph<float>> training;
  ParameterValues<float>* graph_parameters = nullptr;
  Batch batch;
  // Whether this thread has computed a shard since its construction. Until then, all elements of `gradient` are zero.
  bool used = false;
};

GradientWorkers::GradientWorkers(const ParameterLayout& layout, BatchLoss loss, Precision precision, ThreadPool& pool)
    : loss_(std::move(loss)), pool_(pool), squared_norms_(static_cast<std::size_t>(pool.size())) {
  for (int i = 0; i < pool.size(); ++i) workers_.push_back(std::make_unique<Worker>(layout, precision));
}

GradientWorkers::~GradientWorkers() = default;

template <class Work>
LossSums GradientWorkers::for_each_shard(std::span<const Shard> shards, Work work) {
  sums_.assign(shards.size(), {});
  pool_.run([&](int thread) {
    for (auto i = static_cast<std::size_t>(thread); i < shards.size(); i += workers_.size())
      work(*workers_[static_cast<std::size_t>(thread)], i);
  });
  LossSums sum;
  for (const LossSums& part : sums_) sum += part;
  return sum;
}

LossSums GradientWorkers::compute(ParameterValues<float>& parameters, const Examples& examples,
                                  std::span<const Shard> shards, const LossOptions& options, const DropoutKey& key) {
  return for_each_shard(shards, [&](Worker& worker, std::size_t i) {
    examples.fill(shards[i].examples, worker.batch);
    Graph<float>& graph = worker.graph(parameters);
    graph.set_dropout({key.seed, key.update, static_cast<std::uint32_t>(i)});
    worker.used = true;
    graph.backward(loss_(graph, worker.batch, options, &sums_[i]));
  });
}

LossSums GradientWorkers::evaluate(ParameterValues<float>& parameters, const Examples& examples,
                                   std::span<const Shard> shards) {
  return for_each_shard(shards, [&](Worker& worker, std::size_t i) {
    examples.fill(shards[i].examples, worker.batch);
    worker.arena.reset();
    Graph<float> graph(worker.device, parameters);
    loss_(graph, worker.batch, {}, &sums_[i]);
  });
}

Slice trained_part(const ParameterLayout& layout, const Slice& slice) {
  const std::int64_t end = layout.trained_size();
  return {std::min(slice.begin, end), std::min(slice.end, end)};
}

double GradientWorkers::reduce() {
  pool_.run([&](int thread) {
    const ParameterLayout& layout = workers_[0]->gradient.layout();
    const Slice slice = slice_of(layout.storage_size(), pool_.size(), thread);
    const auto part = [&](std::size_t worker) {
      return workers_[worker]->gradient.flat().subspan(static_cast<std::size_t>(slice.begin),
                                                       static_cast<std::size_t>(slice.size()));
    };
    for (std::size_t i = 1; i < workers_.size(); ++i)
      if (workers_[i]->used) add_to<float>(part(0), part(i));
    const Slice trained = trained_part(layout, slice);
    squared_norms_[static_cast<std::size_t>(thread)] =
        squared_norm<float>(part(0).first(static_cast<std::size_t>(trained.size())));
  });
  double sum = 0;
  for (const double part : squared_norms_) sum += part;
  return std::sqrt(sum);
}

ParameterValues<float>& GradientWorkers::gradient() {
  return workers_[0]->gradient;
}

void GradientWorkers::clear(const Slice& slice) {
  for (const auto& worker : workers_) {
    if (!worker->used) continue;
    const auto part =
        worker->gradient.flat().subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
    std::fill(part.begin(), part.end(), 0.0F);
  }
}

std::int64_t GradientWorkers::memory() const {
  std::int64_t sum = 0;
  for (const auto& worker : workers_) {
    const std::size_t step = worker->training ? worker->training->reserved() : worker->arena.reserved();
    sum += static_cast<std::int64_t>(step + worker->gradient.flat().size_bytes());
  }
  return sum;
}

}  // namespace heed
