#include "heed/train/gpu_workers.h"

#include <cmath>
#include <functional>
#include <string_view>

#include "heed/ops/optimizer_kernels.h"

namespace heed {
namespace {

/// Returns the shards of one batch as one.
Shard joined(std::span<const Shard> shards) {
  Shard out = shards.front();
  for (const Shard& shard : shards.subspan(1)) {
    out.examples = {out.examples.data(), out.examples.size() + shard.examples.size()};
    out.target_tokens += shard.target_tokens;
  }
  return out;
}

/// Returns a rank's share of each batch as one shard. A rank has no share of a batch that was cut into few shards.
std::vector<Shard> shares_of_batches(std::span<const Shard> shards, const Communicator& ranks) {
  std::vector<Shard> out;
  for (std::size_t begin = 0, end = 0; begin < shards.size(); begin = end) {
    for (end = begin + 1; end < shards.size() && shards[end].part > 0;) ++end;
    const Slice own = share_of_rank(static_cast<std::int64_t>(end - begin), ranks, ranks.rank());
    if (own.size() > 0)
      out.push_back(
          joined(shards.subspan(begin + static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.size()))));
  }
  return out;
}

/// Returns a number that is another one for other bytes, but for rare chances.
std::int64_t fingerprint(std::span<const float> numbers) {
  const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
  return static_cast<std::int64_t>(std::hash<std::string_view>()(bytes) >> 1);
}

/// Returns elements of an array in the memory of a GPU: those of a tensor from `begin` to `end` - 1.
std::span<float> part(const Tensor<float>& flat, std::int64_t begin, std::int64_t end) {
  return flat.span().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

}  // namespace

class GpuWorkers::Step : public UpdateStep {
 public:
  Step(GpuWorkers& workers, const UpdateArrays& arrays)
      : workers_(workers),
        arrays_(arrays),
        device_(workers.device_),
        host_gradients_(workers.layout_, PageSize::small),
        parameters_(device_, arrays.parameters),
        gradients_(device_, host_gradients_),
        graph_(device_, parameters_.view(), gradients_.view()) {
    if (arrays.smoothed) smoothed_.emplace(device_, *arrays.smoothed);
    const auto memory = arrays.optimizer.memory();
    for (std::size_t i = 0; i < memory.size(); ++i)
      if (memory[i]) memory_[i].emplace(device_, *memory[i]);
  }

  void submit(const Examples& examples, std::span<const Shard> shards, LossOptions loss, const DropoutKey& dropout,
              std::int64_t step, double learning_rate) override {
    loss.scale = 1 / static_cast<double>(target_tokens_of(shards));
    Result result;
    const std::vector<Shard> batches = shares_of_batches(shards, workers_.ranks_);
    std::vector<PendingSums> sums(batches.size());
    device_.fill(gradients_.view().flat(), 0.0F);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      examples.fill(batches[i].examples, workers_.batch_);
      graph_.reset();
      graph_.set_dropout(dropout, static_cast<std::uint32_t>(batches[i].first));
      graph_.backward(workers_.loss_(graph_, workers_.batch_, loss, &sums[i]));
    }
    if (workers_.sum_) workers_.sum_->add_up(workers_.device_, gradients_.view().flat().span());
    result.gradient_norm = norm_of_gradient();
    result.sums = workers_.total(sums);
    get_running_sums();
    result.applied = is_finite(result, host_gradients_);
    if (result.applied) apply(step, learning_rate, result.gradient_norm);
    result_ = result;
  }
  Result collect() override { return result_; }
  int most_submitted() const override { return 1; }

  void gather_parameters() override {
    parameters_.get();
    if (smoothed_) smoothed_->get();
    check_ranks_agree();
  }

  void gather_memory() override {
    for (const auto& array : memory_)
      if (array) array->get();
  }

  void take_over() override {
    parameters_.put();
    if (smoothed_) smoothed_->put();
    for (const auto& array : memory_)
      if (array) array->put();
  }

 private:
  /// Ends all ranks where their parameters are not the same. Each rank updates its own, from the same sums.
  void check_ranks_agree() {
    Communicator& ranks = workers_.ranks_;
    if (ranks.size() == 1) return;
    if (!ranks.all_same(fingerprint(arrays_.parameters.flat())))
      fail_together(ranks, Error("the parameters of the ranks are no longer the same: a GPU, or the connection of the "
                                 "GPUs, computes wrongly (the model file holds the last good state)"));
  }

  std::int64_t trained() const { return workers_.layout_.trained_size(); }

  /// Returns the Euclidean norm of the gradient, for which the host waits for the GPU: what the batches have added to
  /// sums in the memory of the host is then complete, too.
  double norm_of_gradient() {
    const ArenaScope scope(device_.arena()), host_scope(device_.host_arena());
    const Tensor<double> square = device_.arena().tensor<double>({});
    squared_norm<float>(workers_.device_, part(gradients_.view().flat(), 0, trained()), square.data());
    return std::sqrt(device_.read(square));
  }

  /// Copies the sums for running averages to the host, where few numbers are updated.
  void get_running_sums() {
    if (workers_.layout_.running().empty()) return;
    device_.get(running(gradients_.view().flat()), running(ParameterView<float>(host_gradients_).flat()));
  }

  /// Returns the elements of the running averages.
  Tensor<float> running(Tensor<float> flat) const { return {flat.data() + trained(), {flat.size() - trained()}}; }

  void apply(std::int64_t step, double learning_rate, double norm) {
    if (!workers_.layout_.running().empty()) {
      move_running_averages(arrays_.parameters, host_gradients_);
      device_.put(running(ParameterView<float>(arrays_.parameters).flat()), running(parameters_.view().flat()));
    }
    const auto trained_part_of = [&](const std::optional<DeviceParameters<float>>& array) {
      return array ? part(array->view().flat(), 0, trained()) : std::span<float>();
    };
    arrays_.optimizer.update(workers_.device_, part(parameters_.view().flat(), 0, trained()),
                             part(gradients_.view().flat(), 0, trained()), trained_part_of(memory_[0]),
                             trained_part_of(memory_[1]),
                             {.learning_rate = learning_rate,
                              .number = step,
                              .gradient_scale = clipping_factor(norm, arrays_.optimizer.settings().clip_norm)});
    if (smoothed_)
      move_average<float>(workers_.device_, smoothed_->view().flat().span(), parameters_.view().flat().span(),
                          smoothing_decay(arrays_.smoothing_rate, step));
  }

  GpuWorkers& workers_;
  UpdateArrays arrays_;
  Device device_;
  ParameterValues<float> host_gradients_;  // of which only the sums for running averages are used
  DeviceParameters<float> parameters_, gradients_;
  std::optional<DeviceParameters<float>> smoothed_;
  std::array<std::optional<DeviceParameters<float>>, 2> memory_;
  Graph<float> graph_;
  Result result_;
};

std::unique_ptr<UpdateStep> GpuWorkers::make_update_step(const UpdateArrays& arrays) {
  return std::make_unique<Step>(*this, arrays);
}

LossSums GpuWorkers::evaluate(ParameterValues<float>& parameters, const Examples& examples,
                              std::span<const Shard> shards) {
  const Device device(device_);
  const DeviceParameters<float> on_device(device, parameters);
  // Each rank computes some of the batches.
  std::vector<Shard> batches = shares_of_batches(shards, no_other_ranks());
  const Slice own = share_of_rank(std::ssize(batches), ranks_, ranks_.rank());
  batches = {batches.begin() + own.begin, batches.begin() + own.end};
  std::vector<PendingSums> sums(batches.size());
  Graph<float> graph(device, on_device.view());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    examples.fill(batches[i].examples, batch_);
    graph.reset();
    graph.set_dropout({}, static_cast<std::uint32_t>(batches[i].first));
    loss_(graph, batch_, {}, &sums[i]);
  }
  device.wait();
  return total(sums);
}

/// Returns the sum over the batches of all ranks.
LossSums GpuWorkers::total(std::span<const PendingSums> batches) {
  LossSums own, out;
  for (const PendingSums& batch : batches) own += batch.total();
  for (const LossSums& each : values_of_ranks(ranks_, own)) out += each;
  return out;
}

}  // namespace heed
