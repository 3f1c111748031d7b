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
#include "heed/ops/gemm/prepared_weights.h"
#include "heed/ops/optimizer_kernels.h"
#include "heed/train/update_step.h"

namespace heed {
namespace {

// The greatest number of updates whose work is counted. The first updates of an epoch are typical of the whole epoch.
constexpr std::size_t kUpdates = 1000;
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
  Worker(ParameterValues<float>& parameters, Precision precision, PreparedWeights& weights)
      : device{arena, precision, nullptr, &weights},
        gradient(parameters.layout()),
        graph(device, parameters, gradient) {}

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

  /// Returns a graph input like some(), but stored as bfloat16, like the result of a normalisation.
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
    const Tensor<float> arriving = y.gradient.begin_writing();
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
  /// Seconds per parameter for adding one leaf's gradient to another's (see GradientSum), and clearing it.
  double sum = 0;
  /// Seconds per parameter for the norm of the gradients, the update, and clearing the gradients.
  double update = 0;
  double barrier = 0;
};

/// Measures on this machine how many seconds each unit of training work takes.
class Calibration {
 public:
  /// `shard` are the examples of a typical shard (part of a batch). The kernels are measured on these examples.
  Calibration(const TrainingWork& work, std::span<const std::int32_t> shard)
      : model_(work.model),
        products_(model_.products()),
        norms_(*model_.residual_norms()),
        options_(work.batch),
        pool_(work.pool),
        timer_(work.pool) {
    work.examples.fill(shard, batch_);
    for (const std::int32_t example : shard) counts_.add(work.examples.size_of(example));
    // A shard adds to the gradient of a weight once for all its rows. With bfloat16, the product itself is so fast that
    // adding to the gradient takes a noticeable part of the time: the measured matrix product therefore has as many
    // rows as a shard. The weights themselves are prepared once, because all shards of an update share them.
    weights_.begin(work.parameters.flat());
    const bool bfloat16 = takes_bfloat16(work.precision);
    rows_ = std::min((counts_.source + counts_.target + 1) / 2, bfloat16 ? INT64_MAX : kRows);
    std::int64_t widest = 4 * model_.width();
    for (const Product& product : products_) widest = std::max({widest, 2 * product.outputs, 2 * product.inputs});
    const std::int64_t output = model_.target_vocabulary() * ((bfloat16 ? model_.width() : 0) + kRows);
    const std::int64_t size = std::max(3 * std::max({rows_, counts_.source, counts_.target}) * widest, output);
    slice_layout_.add("slice", {std::min(kSlice, slice_of(model_.layout().storage_size(), pool_.size(), 0).size())},
                      Initialiser::zeros());
    for (int i = 0; i < pool_.size(); ++i) {
      workers_.push_back(std::make_unique<Worker>(work.parameters, work.precision, weights_));
      slices_.push_back(std::make_unique<UpdatedSlice>(slice_layout_, work.optimizer));
    }
    pool_.run([&](int thread) { worker(thread).take(static_cast<std::size_t>(size) * sizeof(float)); });
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
    timer_.run();
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
        return attention<float>(worker.graph, {q, 0}, {kv, width}, {kv, 2 * width}, width, queries, keys,
                                {.heads = layers.heads,
                                 .causal = layers.kind == AttentionKind::decoder,
                                 .dropout = layers.dropout,
                                 .use = ResultUse::linear});
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
    const auto add_kernel = [&](double& rate, auto work) {
      const std::size_t kernel = timer_.add([this, work](int thread) {
        UpdatedSlice& s = *slices_[static_cast<std::size_t>(thread)];
        return seconds_of([&] { work(s); });
      });
      shares_.push_back({&rate, 1 / static_cast<double>(size), kernel});
    };
    add_kernel(rates_.sum, [](UpdatedSlice& s) {
      add_to<float>(s.sum.flat(), s.other.flat());
      s.other.fill_zero();
    });
    add_kernel(rates_.update, [this, size](UpdatedSlice& s) {
      squared_norm<float>(s.sum.flat());
      s.optimizer.update(s.value, s.sum, {0, size}, {.learning_rate = 1e-4, .number = 1, .gradient_scale = 1});
      if (options_.exponential_smoothing > 0) move_average<float>(s.other.flat(), s.value.flat(), 0.5);
      s.sum.fill_zero();
    });
  }

  const Model<float>& model_;
  const std::vector<Product> products_;
  const ResidualNorms norms_;
  const BatchOptions& options_;
  ThreadPool& pool_;
  KernelTimer timer_;
  Batch batch_;
  TokenCounts counts_;
  std::int64_t rows_ = 0;
  std::vector<std::int32_t> positions_;
  ParameterLayout slice_layout_;
  PreparedWeights weights_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<UpdatedSlice>> slices_;
  std::vector<Share> shares_;
  Rates rates_;
};

/// The counted work of each leaf (see GradientSum) in each of the first updates of an epoch.
struct Plan {
  Plan(const Examples& examples, const BatchOptions& options) {
    EpochBatches batches(examples, options.limits(), static_cast<std::uint64_t>(options.seed));
    batches.prepare(0);
    std::vector<Shard> shards;
    std::vector<std::pair<std::int64_t, std::vector<std::int32_t>>> by_work;
    for (std::int64_t b = 0; b < batches.size() && updates.size() < kUpdates;) {
      shards.clear();
      for (int i = 0; i < options.optimizer_delay && b < batches.size(); ++i)
        cut_into_shards(examples, batches[b++], shards);
      const auto leaves_of_update = static_cast<std::size_t>(most_parts(shards));
      std::vector<TokenCounts>& update = updates.emplace_back(leaves_of_update);
      leaves = std::max(leaves, leaves_of_update);
      for (std::size_t i = 0; i < shards.size(); ++i) {
        TokenCounts shard;
        for (const std::int32_t example : shards[i].examples) shard.add(examples.size_of(example));
        update[i % leaves_of_update] += shard;
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

  // The counted work of each leaf in each update: [update][leaf].
  std::vector<std::vector<TokenCounts>> updates;
  std::size_t leaves = 1;  // the largest number of leaves of an update
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

/// Computes updates that only serve to measure their time. The updates change copies of the parameters.
class TrialUpdates {
 public:
  explicit TrialUpdates(const TrainingWork& work)
      : work_(work),
        parameters_(work.parameters),
        optimizer_(work.optimizer, work.model.layout(), memory_),
        batches_(work.examples, work.batch.limits(), static_cast<std::uint64_t>(work.batch.seed)) {
    if (!work.gpu) threads_.emplace(work.model.layout(), work.loss, work.precision, work.pool);
    TrainingWorkers& workers = work.gpu ? *work.gpu : *threads_;
    step_ = workers.make_update_step({optimizer_, memory_, parameters_});
    batches_.prepare(0);
  }

  /// Computes `updates` updates, and returns their shards.
  std::vector<Shard> run(int updates) {
    std::vector<Shard> all;
    int submitted = 0;
    // If an update is not applied, the later ones are given up.
    const auto collect = [&] { submitted = step_->collect().applied ? submitted - 1 : 0; };
    for (int i = 0; i < updates; ++i) {
      if (submitted == step_->most_submitted()) collect();
      std::vector<Shard> shards;
      for (int batch = 0; batch < work_.batch.optimizer_delay; ++batch)
        cut_into_shards(work_.examples, batches_[next_batch_++ % batches_.size()], shards);
      const DropoutKey dropout{.seed = 1, .update = number_++};
      step_->submit(work_.examples, shards, work_.batch.loss(), dropout, static_cast<std::int64_t>(number_), 0);
      ++submitted;
      all.insert(all.end(), shards.begin(), shards.end());
    }
    while (submitted > 0) collect();
    return all;
  }
  /// Returns how many updates it takes to measure the speed.
  int enough() const { return kLeastUpdates * step_->most_submitted(); }

 private:
  const TrainingWork& work_;
  ParameterValues<float> parameters_;
  NamedParameterValues memory_;
  Optimizer optimizer_;
  EpochBatches batches_;
  std::optional<GradientWorkers> threads_;
  std::unique_ptr<UpdateStep> step_;
  std::int64_t next_batch_ = 0;
  std::uint64_t number_ = 0;
};

/// Measures the speed of training with whole updates, on a GPU, or for a model whose layers have other work than the
/// kernels that Calibration measures.
TrainingCost measured_cost(const TrainingWork& work) {
  TrialUpdates updates(work);
  TrainingCost cost;
  double operations = 0;
  updates.run(1);  // allocates memory, and is not measured
  while (cost.seconds < kMeasuredSeconds) {
    std::vector<Shard> shards;
    cost.seconds += seconds_of([&] { shards = updates.run(updates.enough()); });
    for (const Shard& shard : shards) {
      cost.target_tokens += shard.target_tokens;
      TokenCounts counts;
      for (const std::int32_t example : shard.examples) counts.add(work.examples.size_of(example));
      const ModelWork forward = forward_work(work.model, counts);
      operations += 6 * as_double(forward.layers + forward.attention + forward.output);
    }
  }
  cost.parts = {{"measured updates", (work.gpu ? 1 : work.pool.size()) * cost.seconds, operations}};
  return cost;
}

/// The seconds that the updates of a plan take on several machines like this one, without the network.
class Machines {
 public:
  Machines(const TrainingWork& work, const Plan& plan, const Rates& rates)
      : rates_(rates), threads_(work.pool.size()), parameters_(as_double(work.model.layout().storage_size())) {
    const ResidualNorms norms = *work.model.residual_norms();
    for (const std::vector<TokenCounts>& update : plan.updates) {
      std::vector<double>& leaves = updates_.emplace_back();
      for (const TokenCounts& counts : update) {
        const auto parts = seconds_of_tokens(norms, rates, counts);
        leaves.push_back(std::accumulate(parts.begin(), parts.end(), 0.0));
      }
    }
  }

  /// Returns the seconds of all updates on `ranks` machines, where the batches are `times` as large.
  double seconds(int ranks, int times) const {
    double sum = 0;
    for (const std::vector<double>& update : updates_) {
      const std::int64_t leaves = std::ssize(update) * times;
      double longest = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const std::int64_t begin = leaves * rank / ranks, end = leaves * (rank + 1) / ranks;
        for (int thread = 0; thread < threads_; ++thread) {
          double of_thread = 0;
          for (std::int64_t leaf = begin + thread; leaf < end; leaf += threads_)
            of_thread += update[static_cast<std::size_t>(leaf % std::ssize(update))];
          longest = std::max(longest, of_thread);
        }
      }
      sum += longest + updating(leaves, ranks) + 3 * rates_.barrier;
    }
    return sum;
  }

  /// Returns the seconds in which the gradients of an update's leaves are added up and the parameters are updated: each
  /// machine adds up its own leaves, and then everyone's sums in its slice.
  double updating(std::int64_t leaves, int ranks) const {
    const double working = as_double(std::min<std::int64_t>(leaves, ranks));
    const double own = as_double(leaves) / working - 1 + (ranks > 1 ? 1 : 0);  // the sent sum is cleared
    return parameters_ / threads_ * (own * rates_.sum + ((working - 1) * rates_.sum + rates_.update) / ranks);
  }

 private:
  const Rates& rates_;
  const int threads_;
  const double parameters_;
  std::vector<std::vector<double>> updates_;  // the seconds of each leaf of each update
};

/// Predicts the speed of training on 1, 2, 4, ... and cluster.nodes machines like this one.
std::vector<ClusterCost> cluster_costs(const Cluster& cluster, const Machines& machines, const Plan& plan,
                                       double bytes) {
  const double updates = as_double(std::ssize(plan.updates)), tokens = as_double(plan.all.target);
  std::vector<ClusterCost> out;
  for (int nodes = 1;; nodes = std::min(2 * nodes, cluster.nodes)) {
    ClusterCost& cost = out.emplace_back();
    cost.nodes = nodes;
    // A machine sends one sum where the parts of the batch are a multiple of the machines, or both are powers of 2.
    const double exchange = updates * cluster.exchange_seconds(nodes, 1, bytes);
    const double strong = machines.seconds(nodes, 1) + exchange, weak = machines.seconds(nodes, nodes) + exchange;
    cost.speed = tokens / strong;
    cost.network_share = exchange / strong;
    cost.weak_speed = nodes * tokens / weak;
    cost.weak_network_share = exchange / weak;
    cost.sent_bytes = 2 * bytes * (nodes - 1) / nodes;
    if (nodes == cluster.nodes) return out;
  }
}

}  // namespace

TrainingCost training_cost(const TrainingWork& work) {
  const Plan plan(work.examples, work.batch);
  if (plan.updates.empty()) return {};
  const Model<float>& model = work.model;
  // No kernel is timed for these.
  const char* const special = work.gpu                      ? "a training on a GPU"
                              : work.batch.r_drop > 0       ? "a training with --r-drop"
                              : !work.batch.teacher.empty() ? "a training with --teacher"
                              : !model.residual_norms()     ? "this kind of model"
                                                            : nullptr;
  if (special) {
    if (work.cluster)
      throw UsageError("--cluster: the speed of " + std::string(special) +
                       " is measured, not predicted, so that nothing is known of other machines (see --dry-run in "
                       "train(1))");
    return measured_cost(work);
  }
  const Rates rates = Calibration(work, plan.typical_shard).measure();
  const Machines machines(work, plan, rates);
  const double threads = work.pool.size(), updates = as_double(std::ssize(plan.updates));
  TrainingCost cost;
  cost.target_tokens = plan.all.target;
  cost.seconds = machines.seconds(1, 1);
  const auto [layers, output, attention, norming] = seconds_of_tokens(*model.residual_norms(), rates, plan.all);
  const ModelWork forward = forward_work(model, plan.all);
  double optimising = 0;
  for (const std::vector<TokenCounts>& update : plan.updates)
    optimising += threads * machines.updating(std::ssize(update), 1);
  const double bytes = update_bytes(work.optimizer, work.batch, static_cast<std::int64_t>(plan.leaves));
  cost.parts = {
      {"products of the layers", layers, 6 * as_double(forward.layers)},
      {"output layer and loss", output, 6 * as_double(forward.output)},
      {"attention", attention, 6 * as_double(forward.attention)},
      {"norms and embeddings", norming, 0, norm_bytes(model, plan.all)},
      {"optimiser", optimising, 0, bytes * as_double(model.layout().storage_size()) * updates},
      {"waiting at barriers", threads * cost.seconds - layers - output - attention - norming - optimising},
  };
  if (work.cluster)
    cost.clusters =
        cluster_costs(*work.cluster, machines, plan, sizeof(float) * as_double(model.layout().storage_size()));
  return cost;
}

}  // namespace heed
