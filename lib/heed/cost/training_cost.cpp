#include "heed/cost/training_cost.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "heed/cost/kernel_timer.h"
#include "heed/data/batches.h"
#include "heed/ops/attention.h"
#include "heed/ops/dropout.h"
#include "heed/ops/embedding.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/ops/optimizer_kernels.h"
#include "heed/train/update_step.h"

namespace heed {
namespace {

// The greatest number of updates whose work is counted. The first updates of an epoch are typical of the whole epoch.
constexpr std::size_t kUpdates = 1000;
// The number of seconds for which the kernels are measured.
constexpr double kSeconds = 0.1;
// The number of seconds for which whole updates are measured, and the least number of updates.
constexpr double kMeasuredSeconds = 0.5;
constexpr int kLeastUpdates = 2;
// The greatest number of rows of a measured matrix product when no weight has to be converted (float32).
constexpr std::int64_t kRows = 256;
// The greatest number of parameters that one thread updates when the optimiser is measured.
constexpr std::int64_t kSlice = 1 << 20;

/// The memory and the graph of one thread of the measurement. The operands of different ops lie far apart, so that no
/// op finds its operands in the cache, as in training.
struct Worker {
  Worker(ParameterValues<float>& parameters, Precision precision)
      : device{arena, precision}, gradient(parameters.layout()), graph(device, parameters, gradient) {}

  /// Allocates and writes `bytes` of memory, so that the system provides the pages before the measurement.
  void take(std::size_t bytes) {
    std::memset(arena.allocate(bytes + 2 * kApart), 0, bytes + 2 * kApart);
    graph.reset();
  }

  /// Returns a graph input of shape [rows, columns], filled with a small number that is typical for a training step.
  Variable<float> some(std::int64_t rows, std::int64_t columns) {
    const Variable<float> x = graph.input(arena.tensor<float>({rows, columns}), true);
    std::fill_n(x.value.data(), x.value.size(), 0.01F);
    return x;
  }

  /// Returns a graph input like some(), but stored as bfloat16, like the feed-forward layer's inner result.
  Variable<float> some_rounded(std::int64_t rows, std::int64_t columns) {
    const Variable<float> x = graph.rounded_result({rows, columns});
    std::fill_n(x.rounded.data(), x.rounded.size(), to_bfloat16(0.01F));
    return x;
  }

  /// Returns the seconds that the forward and backward pass of one op take. `op` maps an input of shape [rows, columns]
  /// to the variable from which the backward pass begins.
  template <class Op>
  double run(std::int64_t rows, std::int64_t columns, Op op, bool rounded = false) {
    graph.reset();
    arena.allocate(begin);
    const Variable<float> x = rounded ? some_rounded(rows, columns) : some(rows, columns);
    other = some(rows, columns);
    Variable<float> y;
    double seconds = seconds_of([&] { y = op(x); });
    const Tensor<float> arriving = y.gradient.fill();
    std::fill_n(arriving.data(), arriving.size(), 0.01F);
    seconds += seconds_of([&] { graph.backward(y); });
    begin = arena.used() > kApart ? 0 : arena.used();
    return seconds;
  }

  static constexpr std::size_t kApart = std::size_t{48} << 20;
  Arena arena;
  CpuContext device;
  ParameterValues<float> gradient;
  Graph<float> graph;
  // The second operand of ops that have two operands; has the same shape as the first operand.
  Variable<float> other;
  // The offset of the next op's operands in the arena, in bytes.
  std::size_t begin = 0;
};

/// The data of one thread when the optimiser is measured: a slice of the parameters, the gradients of two leaves, and
/// the optimiser's moments.
struct UpdatedSlice {
  UpdatedSlice(const ParameterLayout& layout, const OptimizerSettings& settings)
      : value(layout), sum(layout), other(layout), optimizer(settings, layout, memory) {}

  NamedParameterValues memory;
  ParameterValues<float> value, sum, other;
  Optimizer optimizer;
};

/// The measured seconds that one thread takes for each unit of training work, forward and backward pass together.
struct Rates {
  /// Seconds per source token and per target token for the matrix products of all layers, with bias and activation.
  double source_token = 0, target_token = 0;
  /// Seconds per (query, key) pair for the attention of all layers of one AttentionKind: pair[kind].
  std::array<double, 3> pair{};
  /// Seconds per token for the residual connection, dropout and normalisation of one sublayer.
  double norm = 0;
  /// Seconds per token for the embedding.
  double embedding = 0;
  /// Seconds per target token for the logits, the softmax and the loss.
  double output = 0;
  /// Seconds per parameter for adding the leaves' gradients up (see GradientSum), their norm, the update, and clearing
  /// the gradients.
  double parameter = 0;
  double barrier = 0;
};

/// Measures on this machine how many seconds each unit of training work takes.
class Calibration {
 public:
  /// `shard` are the examples of a typical shard (part of a batch). The kernels are measured on these examples.
  /// `leaves` is the number of gradients that an update adds up.
  Calibration(const Model<float>& model, ParameterValues<float>& parameters, const OptimizerSettings& optimizer,
              const Examples& examples, std::span<const std::int32_t> shard, std::int64_t leaves,
              const BatchOptions& options, Precision precision, ThreadPool& pool)
      : model_(model),
        products_(model.products()),
        norms_(*model.residual_norms()),
        leaves_(leaves),
        options_(options),
        pool_(pool),
        timer_(pool) {
    examples.fill(shard, batch_);
    for (const std::int32_t example : shard) counts_.add(examples.size_of(example));
    // With bfloat16, a weight is converted once for all rows of a shard. The measured matrix product then needs as many
    // rows as a shard, so that the conversion takes its usual fraction of the time.
    const bool prepares = takes_bfloat16(precision);
    rows_ = std::min((counts_.source + counts_.target + 1) / 2, prepares ? INT64_MAX : kRows);
    std::int64_t widest = 4 * model.width();
    for (const Product& product : products_) widest = std::max({widest, 2 * product.outputs, 2 * product.inputs});
    const std::int64_t output = model.target_vocabulary() * ((prepares ? model.width() : 0) + kRows);
    const std::int64_t size = std::max(3 * std::max({rows_, counts_.source, counts_.target}) * widest, output);
    slice_layout_.add("slice", {std::min(kSlice, slice_of(model.layout().storage_size(), pool.size(), 0).size())},
                      Initialiser::zeros());
    for (int i = 0; i < pool.size(); ++i) {
      workers_.push_back(std::make_unique<Worker>(parameters, precision));
      slices_.push_back(std::make_unique<UpdatedSlice>(slice_layout_, optimizer));
    }
    pool.run([&](int thread) { worker(thread).take(static_cast<std::size_t>(size) * sizeof(float)); });
  }

  Rates measure() {
    const PackedOffsets source = batch_.source.packed(), target = batch_.target_in.packed();
    add_embedding();
    for (const AttentionLayers& layers : model_.attention_layers()) {
      const bool in_encoder = layers.kind == AttentionKind::encoder, cross = layers.kind == AttentionKind::cross;
      add_attention(in_encoder ? source : target, in_encoder || cross ? source : target, layers,
                    rates_.pair[static_cast<std::size_t>(layers.kind)]);
    }
    add_layers();
    add_output();
    add_update();
    timer_.run(kSeconds);
    for (const Share& share : shares_) *share.rate += share.times * timer_.seconds(share.kernel);
    rates_.barrier = timer_.barrier_seconds();
    return rates_;
  }

 private:
  /// One term of a member of Rates: `times` multiplied by the measured seconds of a kernel is added to `*rate`.
  struct Share {
    double* rate;
    double times;
    std::size_t kernel;
  };

  Worker& worker(int thread) { return *workers_[static_cast<std::size_t>(thread)]; }

  /// Adds the kernel work(worker) to the timer. One call of the kernel processes `count` tokens or (query, key) pairs.
  /// After the measurement, `rate` grows by times / count multiplied by the seconds of one call.
  template <class Work>
  void add(double& rate, std::int64_t times, std::int64_t count, Work work) {
    const std::size_t kernel = timer_.add([this, work](int thread) { return work(worker(thread)); });
    shares_.push_back({&rate, static_cast<double>(times) / static_cast<double>(count), kernel});
  }

  /// Adds one kernel for each shape of matrix product in the model's layers, and one kernel for the normalisation.
  void add_layers() {
    std::map<std::tuple<std::int64_t, std::int64_t, Activation, bool, bool>, std::vector<Product>> kinds;
    for (const Product& product : products_)
      kinds[{product.outputs, product.inputs, product.activation, product.gated, product.rounded_input}].push_back(
          product);
    for (const auto& [kind, products] : kinds) {
      const Product product = products.front();
      const bool rounded = product.rounded_input && takes_bfloat16(workers_.front()->device);
      const std::int64_t source =
          std::count_if(products.begin(), products.end(), [](const Product& p) { return p.side == TokenSide::source; });
      add(rates_.source_token, source, rows_, [=, this](Worker& worker) {
        Graph<float>& graph = worker.graph;
        const auto op = [&](const Variable<float>& x) { return dropout(graph, product(graph, x), product.dropout); };
        return worker.run(rows_, product.inputs, op, rounded);
      });
      const auto target = static_cast<double>(std::ssize(products) - source);
      shares_.push_back({&rates_.target_token, target / static_cast<double>(rows_), shares_.back().kernel});
    }
    add_norm();
  }

  void add_norm() {
    add(rates_.norm, 1, rows_, [=, this](Worker& worker) {
      Graph<float>& graph = worker.graph;
      return worker.run(rows_, model_.width(), [&](const Variable<float>& x) {
        // As in training, the op overwrites its second operand, worker.other, with the sum of both operands.
        // Each timed call adds to the sum of the call before.
        return norms_.norm.add(graph, x, worker.other, norms_.dropout, worker.other.value).normed;
      });
    });
  }

  void add_attention(PackedOffsets queries, PackedOffsets keys, const AttentionLayers& layers, double& rate) {
    add(rate, layers.layers, counts_.pairs(layers.kind), [=](Worker& worker) {
      const std::int64_t width = layers.width;
      return worker.run(std::max(queries.tokens(), keys.tokens()), 3 * width, [&](const Variable<float>& x) {
        const auto rows = [&](std::int64_t count) {
          Variable<float> part = x;
          part.value = x.value.row_block(0, count);
          return part;
        };
        const Variable<float> q = rows(queries.tokens()), kv = rows(keys.tokens());
        return attention<float>(
            worker.graph, {q, 0}, {kv, width}, {kv, 2 * width}, width, queries, keys,
            {.heads = layers.heads, .causal = layers.kind == AttentionKind::decoder, .dropout = layers.dropout});
      });
    });
  }

  void add_embedding() {
    const auto ids = std::span<const std::int32_t>(batch_.target_in.ids);
    positions_.assign(ids.size(), 0);
    add(rates_.embedding, 1, std::ssize(ids), [=, this](Worker& worker) {
      return worker.run(1, model_.width(), [&](const Variable<float>& position) {
        return embedding(worker.graph, ids, positions_, model_.output_weight(worker.graph), position, 1.0F,
                         norms_.dropout);
      });
    });
  }

  void add_output() {
    const auto all = std::span<const std::int32_t>(batch_.target_out);
    const auto targets = all.first(std::min(all.size(), static_cast<std::size_t>(rows_)));
    add(rates_.output, 1, std::ssize(targets), [=, this](Worker& worker) {
      Graph<float>& graph = worker.graph;
      return worker.run(std::ssize(targets), model_.width(), [&](const Variable<float>& x) {
        return projection_cross_entropy(graph, x, model_.output_weight(graph), model_.output_bias(graph), targets,
                                        {.label_smoothing = options_.label_smoothing, .scale = 1e-3});
      });
    });
  }

  void add_update() {
    const std::int64_t size = slice_layout_.storage_size();
    const std::size_t kernel = timer_.add([=, this](int thread) {
      UpdatedSlice& s = *slices_[static_cast<std::size_t>(thread)];
      return seconds_of([&] {
        for (std::int64_t i = 1; i < leaves_; ++i) add_to<float>(s.sum.flat(), s.other.flat());
        squared_norm<float>(s.sum.flat());
        s.optimizer.update(s.value, s.sum, {0, size}, {.learning_rate = 1e-4, .number = 1, .gradient_scale = 1});
        if (options_.exponential_smoothing > 0) move_average<float>(s.other.flat(), s.value.flat(), 0.5);
        for (std::int64_t i = 0; i < leaves_; ++i) (i == 0 ? s.sum : s.other).fill_zero();
      });
    });
    shares_.push_back({&rates_.parameter, 1 / static_cast<double>(size), kernel});
  }

  const Model<float>& model_;
  const std::vector<Product> products_;
  const ResidualNorms norms_;
  const std::int64_t leaves_;
  const BatchOptions& options_;
  ThreadPool& pool_;
  KernelTimer timer_;
  Batch batch_;
  TokenCounts counts_;
  std::int64_t rows_ = 0;
  std::vector<std::int32_t> positions_;
  ParameterLayout slice_layout_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<UpdatedSlice>> slices_;
  std::vector<Share> shares_;
  Rates rates_;
};

/// The counted work of each thread in each of the first updates of an epoch.
struct Plan {
  Plan(const Examples& examples, const BatchOptions& options, int threads) {
    EpochBatches batches(examples, options.limits(), static_cast<std::uint64_t>(options.seed));
    batches.prepare(0);
    std::vector<Shard> shards;
    std::vector<std::pair<std::int64_t, std::vector<std::int32_t>>> by_work;
    for (std::int64_t b = 0; b < batches.size() && updates.size() < kUpdates;) {
      shards.clear();
      for (int i = 0; i < options.optimizer_delay && b < batches.size(); ++i)
        cut_into_shards(examples, batches[b++], shards);
      std::vector<TokenCounts>& update = updates.emplace_back(static_cast<std::size_t>(threads));
      const std::int64_t of_update = most_parts(shards);
      leaves = std::max(leaves, of_update);
      for (std::size_t i = 0; i < shards.size(); ++i) {
        TokenCounts shard;
        for (const std::int32_t example : shards[i].examples) shard.add(examples.size_of(example));
        update[i % static_cast<std::size_t>(of_update) % update.size()] += shard;
        all += shard;
        by_work.emplace_back(shard.cross_pairs,
                             std::vector<std::int32_t>(shards[i].examples.begin(), shards[i].examples.end()));
      }
    }
    if (by_work.empty()) return;
    const auto middle = by_work.begin() + std::ssize(by_work) / 2;
    std::nth_element(by_work.begin(), middle, by_work.end());
    typical_shard = std::move(middle->second);
  }

  // The counted work of each thread in each update: [update][thread].
  std::vector<std::vector<TokenCounts>> updates;
  // The largest number of leaves whose gradients an update adds up; GradientWorkers computes leaf i on thread i mod
  // (number of threads).
  std::int64_t leaves = 1;
  TokenCounts all;
  // The indices of the examples in a typical shard: the shard whose number of (query, key) pairs in the
  // cross-attention is the median of all shards.
  std::vector<std::int32_t> typical_shard;
};

/// Returns the bytes that an update reads and writes for each parameter.
double update_bytes(const OptimizerSettings& optimizer, const BatchOptions& options, std::int64_t leaves) {
  const int own = optimizer.kind != OptimizerKind::sgd ? 7 : optimizer.momentum > 0 ? 5 : 3;
  return 4 * as_double(3 * (leaves - 1) + 1 + own + (options.exponential_smoothing > 0 ? 3 : 0) + leaves);
}

/// Returns the bytes that normalisations and embeddings read and write in the forward and backward pass: ten floats and
/// two bytes of dropout mask for each element of their results.
double norm_bytes(const Model<float>& model, const TokenCounts& counts) {
  const ResidualNorms norms = *model.residual_norms();
  return 42 * as_double(model.width()) *
         (as_double(counts.source) * (norms.source + 1) + as_double(counts.target) * (norms.target + 1));
}

/// Returns how many seconds one thread needs for the counted work `t`, in four parts: the matrix products of the
/// layers; the output layer and the loss; attention; normalisations and embeddings.
std::array<double, 4> seconds_of_tokens(const ResidualNorms& norms, const Rates& rate, const TokenCounts& t) {
  const auto attention = [&](AttentionKind kind) {
    return rate.pair[static_cast<std::size_t>(kind)] * as_double(t.pairs(kind));
  };
  return {rate.source_token * as_double(t.source) + rate.target_token * as_double(t.target),
          rate.output * as_double(t.target),
          attention(AttentionKind::encoder) + attention(AttentionKind::decoder) + attention(AttentionKind::cross),
          (norms.source * rate.norm + rate.embedding) * as_double(t.source) +
              (norms.target * rate.norm + rate.embedding) * as_double(t.target)};
}

/// Measures the speed of training with whole updates, for a model whose layers have other work than the kernels that
/// Calibration measures. The updates change copies of the parameters.
TrainingCost measured_cost(const Model<float>& model, const ParameterValues<float>& parameters,
                           const OptimizerSettings& optimizer, const Examples& examples, const BatchOptions& options,
                           Precision precision, ThreadPool& pool) {
  ParameterValues<float> copy = parameters;
  NamedParameterValues memory;
  const Optimizer updater(optimizer, model.layout(), memory);
  GradientWorkers workers(model.layout(), loss_of(model), precision, pool);
  UpdateStep step(workers, updater, copy, nullptr, 0, pool);
  EpochBatches batches(examples, options.limits(), static_cast<std::uint64_t>(options.seed));
  batches.prepare(0);
  TrainingCost cost;
  double operations = 0;
  // The first update allocates the memory of the threads and is not measured.
  std::int64_t next = 0;
  for (int update = 0; update <= kLeastUpdates || cost.seconds < kMeasuredSeconds; ++update) {
    std::vector<Shard> shards;
    for (int i = 0; i < options.optimizer_delay; ++i)
      cut_into_shards(examples, batches[next++ % batches.size()], shards);
    const double seconds = seconds_of([&] {
      step.run(examples, shards, options.loss(), {.seed = 1, .update = static_cast<std::uint64_t>(update)}, update + 1,
               0);
    });
    if (update == 0) continue;
    cost.seconds += seconds;
    for (const Shard& shard : shards) {
      cost.target_tokens += shard.target_tokens;
      TokenCounts counts;
      for (const std::int32_t example : shard.examples) counts.add(examples.size_of(example));
      const ModelWork work = forward_work(model, counts);
      operations += 6 * as_double(work.layers + work.attention + work.output);
    }
  }
  cost.parts = {{"measured updates", pool.size() * cost.seconds, operations}};
  return cost;
}

}  // namespace

TrainingCost training_cost(const Model<float>& model, ParameterValues<float>& parameters,
                           const OptimizerSettings& optimizer, const Examples& examples, const BatchOptions& batch,
                           Precision precision, ThreadPool& pool) {
  const Plan plan(examples, batch, pool.size());
  if (plan.updates.empty()) return {};
  if (!model.residual_norms()) return measured_cost(model, parameters, optimizer, examples, batch, precision, pool);
  const Rates rate =
      Calibration(model, parameters, optimizer, examples, plan.typical_shard, plan.leaves, batch, precision, pool)
          .measure();
  const ResidualNorms norms = *model.residual_norms();
  const double threads = pool.size(), updates = as_double(std::ssize(plan.updates));
  const double parameter_count = as_double(model.layout().storage_size());
  const double update = rate.parameter * parameter_count / threads, barriers = 3 * rate.barrier;
  TrainingCost cost;
  cost.target_tokens = plan.all.target;
  for (const std::vector<TokenCounts>& of_threads : plan.updates) {
    double longest = 0;
    for (const TokenCounts& counts : of_threads) {
      const auto parts = seconds_of_tokens(norms, rate, counts);
      longest = std::max(longest, std::accumulate(parts.begin(), parts.end(), 0.0));
    }
    cost.seconds += longest + update + barriers;
  }
  const auto [layers, output, attention, norming] = seconds_of_tokens(norms, rate, plan.all);
  const ModelWork work = forward_work(model, plan.all);
  const double optimising = threads * update * updates;
  cost.parts = {
      {"products of the layers", layers, 6 * as_double(work.layers)},
      {"output layer and loss", output, 6 * as_double(work.output)},
      {"attention", attention, 6 * as_double(work.attention)},
      {"norms and embeddings", norming, 0, norm_bytes(model, plan.all)},
      {"optimiser", optimising, 0, update_bytes(optimizer, batch, plan.leaves) * parameter_count * updates},
      {"waiting at barriers", threads * cost.seconds - layers - output - attention - norming - optimising},
  };
  return cost;
}

}  // namespace heed
