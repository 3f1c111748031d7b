#include "heed/train/gradient_workers.h"

#include <algorithm>
#include <cmath>

#include "heed/ops/gemm/prepared_weights.h"
#include "heed/ops/optimizer_kernels.h"
#include "heed/train/update_step.h"

namespace heed {

struct GradientWorkers::Worker {
  Worker(Precision precision, PreparedWeights& weights) : device{arena, precision, nullptr, &weights} {}

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

GradientWorkers::GradientWorkers(const ParameterLayout& layout, BatchLoss loss, Precision precision, ThreadPool& pool,
                                 Communicator& ranks)
    : loss_(std::move(loss)),
      pool_(pool),
      ranks_(ranks),
      layout_(layout),
      weights_(std::make_unique<PreparedWeights>()),
      sum_(layout, pool.size(), ranks),
      slice_(sum_.slice_of_rank(ranks.rank())) {
  for (int i = 0; i < pool.size(); ++i) workers_.push_back(std::make_unique<Worker>(precision, *weights_));
}

GradientWorkers::~GradientWorkers() = default;

std::unique_ptr<UpdateStep> GradientWorkers::make_update_step(const UpdateArrays& arrays) {
  return std::make_unique<CpuUpdateStep>(*this, arrays, pool_);
}

/// Completes sums_, of which rank r has the elements parts[r], and adds them up.
LossSums GradientWorkers::total(const std::vector<Slice>& parts) {
  static_assert(std::is_trivially_copyable_v<LossSums>);
  all_gather_elements(ranks_, std::span(sums_), parts);
  LossSums sum;
  for (const LossSums& part : sums_) sum += part;
  return sum;
}

LossSums GradientWorkers::compute(ParameterValues<float>& parameters, const Examples& examples,
                                  std::span<const Shard> shards, const LossOptions& options, const DropoutKey& key) {
  const auto count = std::ssize(shards);
  const std::int64_t leaves = most_parts(shards);
  // The number of shards in the leaves before a leaf.
  const auto before = [&](std::int64_t leaf) { return leaf * (count / leaves) + std::min(leaf, count % leaves); };
  sums_.assign(shards.size(), {});
  weights_->begin(parameters.flat());
  sum_.start(leaves);
  const Slice own = sum_.leaves_of(ranks_.rank());
  const auto compute_leaf = [&](Worker& worker, std::int64_t leaf) {
    ParameterValues<float>& gradients = sum_.open(leaf);
    LossSums* sums = &sums_[static_cast<std::size_t>(before(leaf))];
    for (std::int64_t i = leaf; i < count; i += leaves) {
      const Shard& shard = shards[static_cast<std::size_t>(i)];
      examples.fill(shard.examples, worker.batch);
      Graph<float>& graph = worker.graph(parameters, gradients);
      graph.set_dropout(key, static_cast<std::uint32_t>(shard.first));
      PendingSums found;
      graph.backward(loss_(graph, worker.batch, options, &found));
      *sums++ = found.total();
    }
    sum_.close(leaf);
  };
  pool_.run([&](int thread) {
    try {
      for (std::int64_t leaf = own.begin + thread; leaf < own.end; leaf += pool_.size())
        compute_leaf(*workers_[static_cast<std::size_t>(thread)], leaf);
    } catch (...) {
      sum_.give_up();
      throw;
    }
  });
  parts_.clear();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const Slice theirs = sum_.leaves_of(rank);
    parts_.push_back({before(theirs.begin), before(theirs.end)});
  }
  return total(parts_);
}

LossSums GradientWorkers::evaluate(ParameterValues<float>& parameters, const Examples& examples,
                                   std::span<const Shard> shards, const InterruptGuard* interrupts) {
  parts_.clear();
  for (int rank = 0; rank < ranks_.size(); ++rank) parts_.push_back(share_of_rank(std::ssize(shards), ranks_, rank));
  const Slice own = parts_[static_cast<std::size_t>(ranks_.rank())];
  sums_.assign(shards.size(), {});
  weights_->begin(parameters.flat());
  pool_.run([&](int thread) {
    Worker& worker = *workers_[static_cast<std::size_t>(thread)];
    for (std::int64_t i = own.begin + thread; i < own.end; i += pool_.size()) {
      if (interrupts && interrupts->signal() != 0) return;
      const auto index = static_cast<std::size_t>(i);
      examples.fill(shards[index].examples, worker.batch);
      worker.arena.reset();
      Graph<float> graph(worker.device, parameters);
      graph.set_dropout({}, static_cast<std::uint32_t>(shards[index].first));
      PendingSums found;
      loss_(graph, worker.batch, {}, &found);
      sums_[index] = found.total();
    }
  });
  return total(parts_);
}

Slice trained_part(const ParameterLayout& layout, const Slice& slice) {
  const std::int64_t end = layout.trained_size();
  return {std::min(slice.begin, end), std::min(slice.end, end)};
}

double GradientWorkers::reduce() {
  const std::int64_t size = layout_.storage_size(), blocks = (size + kSumBlock - 1) / kSumBlock;
  const auto block_of = [](std::int64_t element) { return (element + kSumBlock - 1) / kSumBlock; };
  sum_.exchange(pool_);
  squared_norms_.resize(static_cast<std::size_t>(blocks));
  pool_.run([&](int thread) {
    const std::int64_t first = block_of(slice_.begin);
    const Slice own = slice_of(block_of(slice_.end) - first, pool_.size(), thread);
    for (std::int64_t i = first + own.begin; i < first + own.end; ++i) {
      const Slice block{i * kSumBlock, std::min((i + 1) * kSumBlock, size)};
      sum_.add_up(block);
      const Slice trained = trained_part(layout_, block);
      squared_norms_[static_cast<std::size_t>(i)] = squared_norm<float>(gradient().part(trained));
    }
  });
  parts_.clear();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const Slice theirs = sum_.slice_of_rank(rank);
    parts_.push_back({block_of(theirs.begin), block_of(theirs.end)});
  }
  all_gather_elements(ranks_, std::span(squared_norms_), parts_);
  gather_region(gradient(), {layout_.trained_size(), size});
  double sum = 0;
  for (const double part : squared_norms_) sum += part;
  return std::sqrt(sum);
}

/// Completes the elements of `region` of an array of which each rank has its slice.
void GradientWorkers::gather_region(ParameterValues<float>& values, const Slice& region) {
  if (region.size() == 0) return;
  parts_.clear();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const Slice theirs = sum_.slice_of_rank(rank);
    parts_.push_back(
        {std::clamp(theirs.begin, region.begin, region.end), std::clamp(theirs.end, region.begin, region.end)});
  }
  all_gather_elements(ranks_, values.flat(), parts_);
}

void GradientWorkers::gather(ParameterValues<float>& values) {
  gather_region(values, {0, layout_.storage_size()});
}

void GradientWorkers::gather_to_first(ParameterValues<float>& values) {
  std::vector<Message> sends, receives;
  if (ranks_.rank() != 0)
    sends.push_back({0, values.part(slice_)});
  else
    for (int rank = 1; rank < ranks_.size(); ++rank) receives.push_back({rank, values.part(sum_.slice_of_rank(rank))});
  ranks_.exchange(sends, receives);
}

std::int64_t GradientWorkers::memory() const {
  std::int64_t sum = sum_.memory() + weights_->memory();
  for (const auto& worker : workers_)
    sum += static_cast<std::int64_t>(worker->training ? worker->training->reserved() : worker->arena.reserved());
  return sum;
}

}  // namespace heed
