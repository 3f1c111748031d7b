#include "heed/train/gradient_workers.h"

#include <algorithm>
#include <cmath>

#include "heed/ops/optimizer_kernels.h"

namespace heed {

struct GradientWorkers::Worker {
  explicit Worker(Precision precision) : device{arena, precision} {}

  /// Empties this thread's autograd graph and returns it. The graph reads `parameters` and adds gradients to
  /// `gradients`. Constructs a new Graph only when `parameters` is another array than in the previous call.
  Graph<float>& graph(ParameterValues<float>& parameters, ParameterValues<float>& gradients) {
    if (&parameters != graph_parameters) {
      training = std::make_unique<Graph<float>>(device, parameters, gradients);
      graph_parameters = &parameters;
    }
    training->reset();
    training->set_gradients(gradients);
    return *training;
  }

  Arena arena;
  CpuContext device;
  std::unique_ptr<Graph<float>> training;
  ParameterValues<float>* graph_parameters = nullptr;
  Batch batch;
};

GradientWorkers::GradientWorkers(const ParameterLayout& layout, BatchLoss loss, Precision precision, ThreadPool& pool)
    : loss_(std::move(loss)), pool_(pool), layout_(layout), sum_(layout, pool.size()) {
  for (int i = 0; i < pool.size(); ++i) workers_.push_back(std::make_unique<Worker>(precision));
}

GradientWorkers::~GradientWorkers() = default;

LossSums GradientWorkers::total() const {
  LossSums sum;
  for (const LossSums& part : sums_) sum += part;
  return sum;
}

LossSums GradientWorkers::compute(ParameterValues<float>& parameters, const Examples& examples,
                                  std::span<const Shard> shards, const LossOptions& options, const DropoutKey& key) {
  std::int64_t leaves = 0;
  for (const Shard& shard : shards) leaves = std::max(leaves, shard.part + 1);
  sums_.assign(shards.size(), {});
  sum_.start(leaves);
  pool_.run([&](int thread) {
    Worker& worker = *workers_[static_cast<std::size_t>(thread)];
    for (std::int64_t leaf = thread; leaf < leaves; leaf += pool_.size()) {
      ParameterValues<float>& gradients = sum_.open(leaf);
      for (auto i = static_cast<std::size_t>(leaf); i < shards.size(); i += static_cast<std::size_t>(leaves)) {
        examples.fill(shards[i].examples, worker.batch);
        Graph<float>& graph = worker.graph(parameters, gradients);
        graph.set_dropout(key, static_cast<std::uint32_t>(shards[i].first));
        graph.backward(loss_(graph, worker.batch, options, &sums_[i]));
      }
      sum_.close(leaf);
    }
  });
  return total();
}

LossSums GradientWorkers::evaluate(ParameterValues<float>& parameters, const Examples& examples,
                                   std::span<const Shard> shards) {
  sums_.assign(shards.size(), {});
  pool_.run([&](int thread) {
    Worker& worker = *workers_[static_cast<std::size_t>(thread)];
    for (auto i = static_cast<std::size_t>(thread); i < shards.size(); i += workers_.size()) {
      examples.fill(shards[i].examples, worker.batch);
      worker.arena.reset();
      Graph<float> graph(worker.device, parameters);
      loss_(graph, worker.batch, {}, &sums_[i]);
    }
  });
  return total();
}

Slice trained_part(const ParameterLayout& layout, const Slice& slice) {
  const std::int64_t end = layout.trained_size();
  return {std::min(slice.begin, end), std::min(slice.end, end)};
}

double GradientWorkers::reduce() {
  const std::int64_t size = layout_.storage_size(), blocks = (size + kSumBlock - 1) / kSumBlock;
  squared_norms_.resize(static_cast<std::size_t>(blocks));
  pool_.run([&](int thread) {
    const Slice own = slice_of(blocks, pool_.size(), thread);
    for (std::int64_t i = own.begin; i < own.end; ++i) {
      const Slice block{i * kSumBlock, std::min((i + 1) * kSumBlock, size)};
      sum_.add_up(block);
      const Slice trained = trained_part(layout_, block);
      squared_norms_[static_cast<std::size_t>(i)] = squared_norm<float>(
          gradient().flat().subspan(static_cast<std::size_t>(trained.begin), static_cast<std::size_t>(trained.size())));
    }
  });
  double sum = 0;
  for (const double part : squared_norms_) sum += part;
  return std::sqrt(sum);
}

std::int64_t GradientWorkers::memory() const {
  std::int64_t sum = sum_.memory();
  for (const auto& worker : workers_)
    sum += static_cast<std::int64_t>(worker->training ? worker->training->reserved() : worker->arena.reserved());
  return sum;
}

}  // namespace heed
