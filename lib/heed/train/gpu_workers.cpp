#include "heed/train/gpu_workers.h"

#include <functional>
#include <memory>
#include <string_view>

#include "heed/ops/gemm/gemm.h"
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

/// Returns a hash of the bytes of `numbers`: different bytes nearly always give different hashes.
std::int64_t fingerprint(std::span<const float> numbers) {
  const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
  return static_cast<std::int64_t>(std::hash<std::string_view>()(bytes) >> 1);
}

/// Returns elements of an array in the memory of a GPU: those of a tensor from `begin` to `end` - 1.
std::span<float> part(const Tensor<float>& flat, std::int64_t begin, std::int64_t end) {
  return flat.span().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

/// Returns `count` sums in locked memory of `arena`, so that a GPU writes them while the host goes on.
std::span<PendingSums> sums_in(Arena& arena, std::size_t count) {
  auto* const memory = static_cast<PendingSums*>(arena.allocate(count * sizeof(PendingSums)));
  std::uninitialized_value_construct_n(memory, count);
  return {memory, count};
}

}  // namespace

/// The host asks for all kernels of an update without waiting for any of them: the GPU itself decides whether the
/// update is applied. The host waits for the results of an update when it has asked for the next one.
class GpuWorkers::Step : public UpdateStep {
 public:
  Step(GpuWorkers& workers, const UpdateArrays& arrays)
      : workers_(workers),
        arrays_(arrays),
        device_(workers.device_),
        parameters_(device_, arrays.parameters),
        numbers_(device_.arena().source()),
        gradients_(numbers_.tensor<float>({workers.layout_.storage_size()})),
        squared_norm_(numbers_.tensor<double>({})),
        loss_(numbers_.tensor<float>({})),
        finite_(numbers_.tensor<std::uint8_t>({})),
        decision_(numbers_.tensor<UpdateDecision>({})),
        rounded_(takes_bfloat16(workers.device_) ? numbers_.tensor<Bfloat16>(gradients_.shape()) : Tensor<Bfloat16>()),
        graph_(device_, {workers.layout_, parameters_.view().flat().data(), rounded_.data()},
               {workers.layout_, gradients_.data()}) {
    if (arrays.smoothed) smoothed_.emplace(device_, *arrays.smoothed);
    const auto memory = arrays.optimizer.memory();
    for (std::size_t i = 0; i < memory.size(); ++i)
      if (memory[i]) memory_[i].emplace(device_, *memory[i]);
    forget_failures();
  }
  ~Step() override {
    try {
      device_.wait();  // it may still copy to the results
    } catch (const Error&) {
    }
  }

  void submit(const Examples& examples, std::span<const Shard> shards, LossOptions loss, const DropoutKey& dropout,
              std::int64_t step, double learning_rate) override {
    loss.scale = 1 / static_cast<double>(target_tokens_of(shards));
    const std::vector<Shard> batches = shares_of_batches(shards, workers_.ranks_);
    Results& results = results_[(first_ + submitted_) % results_.size()];
    results.locked.reset();
    results.sums = sums_in(results.locked, batches.size());
    results.decision = results.locked.tensor<UpdateDecision>({}).data();
    device_.fill(gradients_, 0.0F);
    device_.fill(loss_, 0.0F);
    if (rounded_) {
      const std::span<float> all = parameters_.view().flat().span();
      const std::int64_t size = std::ssize(all);
      round_matrix(workers_.device_, all.data(), size, 1, size, rounded_.data());
    }
    for (std::size_t i = 0; i < batches.size(); ++i) {
      examples.fill(batches[i].examples, workers_.batch_);
      graph_.reset();
      graph_.set_dropout(dropout, static_cast<std::uint32_t>(batches[i].first));
      const Variable<float> loss_of_batch = workers_.loss_(graph_, workers_.batch_, loss, &results.sums[i]);
      add_to<float>(workers_.device_, loss_.span(), loss_of_batch.value.span());
      graph_.backward(loss_of_batch);
    }
    if (workers_.sum_) {
      workers_.sum_->add_up(workers_.device_, gradients_.span());
      workers_.sum_->add_up(workers_.device_, loss_.span());
    }
    decide();
    apply(step, learning_rate);
    copy_from_gpu(workers_.device_, results.decision, decision_.data(), sizeof(UpdateDecision));
    results.done.record(workers_.device_);
    ++submitted_;
  }

  Result collect() override {
    const Results& results = results_[first_];
    results.done.wait();
    first_ = (first_ + 1) % results_.size();
    --submitted_;
    const Result result{.sums = workers_.total(results.sums),
                        .gradient_norm = results.decision->gradient_norm,
                        .applied = results.decision->applied != 0};
    if (!result.applied) {
      device_.wait();
      submitted_ = 0;
      forget_failures();
    }
    return result;
  }
  int most_submitted() const override { return static_cast<int>(results_.size()); }

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
  /// What a GPU tells of an update, in locked memory of the host.
  struct Results {
    Arena locked{kLockedMemory};
    std::span<PendingSums> sums;  // of the batches
    UpdateDecision* decision = nullptr;
    GpuEvent done;
  };

  /// Lets the GPU apply updates again.
  void forget_failures() {
    UpdateDecision none;
    device_.put(Tensor<UpdateDecision>(&none, {}), decision_);
  }

  /// Ends the training on all ranks if the parameters of the ranks differ. Each rank updates its own copy of the
  /// parameters from the same sums, so that all copies must be equal.
  void check_ranks_agree() {
    Communicator& ranks = workers_.ranks_;
    if (ranks.size() == 1) return;
    if (!ranks.all_same(fingerprint(arrays_.parameters.flat())))
      fail_together(ranks, Error("the parameters of the ranks are no longer the same: a GPU, or the connection of the "
                                 "GPUs, computes wrongly (the model file holds the last good state)"));
  }

  std::int64_t trained() const { return workers_.layout_.trained_size(); }

  /// Decides on the GPU whether the update is applied. The ranks, which have the same sums, decide alike.
  void decide() {
    const ArenaScope scope(device_.arena());
    squared_norm<float>(workers_.device_, part(gradients_, 0, trained()), squared_norm_.data());
    all_finite<float>(workers_.device_, part(gradients_, trained(), gradients_.size()), finite_.data());
    decide_update(workers_.device_, squared_norm_.data(), loss_.data(), finite_.data(),
                  arrays_.optimizer.settings().clip_norm, decision_.data());
  }

  void apply(std::int64_t step, double learning_rate) {
    const UpdateDecision* const decision = decision_.data();
    const Tensor<float> parameters = parameters_.view().flat();
    for (const ParameterInfo& info : workers_.layout_.running()) {
      const Slice average = slice_of_running(info, false), sums = slice_of_running(info, true);
      move_to_means<float>(workers_.device_, part(parameters, average.begin, average.end),
                           part(gradients_, sums.begin, sums.end), kRunningShare, decision);
    }
    const auto trained_part_of = [&](const std::optional<DeviceParameters<float>>& array) {
      return array ? part(array->view().flat(), 0, trained()) : std::span<float>();
    };
    arrays_.optimizer.update(workers_.device_, part(parameters, 0, trained()), part(gradients_, 0, trained()),
                             trained_part_of(memory_[0]), trained_part_of(memory_[1]),
                             {.learning_rate = learning_rate, .number = step, .decision = decision});
    if (smoothed_)
      move_average<float>(workers_.device_, smoothed_->view().flat().span(), parameters.span(),
                          smoothing_decay(arrays_.smoothing_rate, step), decision);
  }

  GpuWorkers& workers_;
  UpdateArrays arrays_;
  Device device_;
  DeviceParameters<float> parameters_;
  std::optional<DeviceParameters<float>> smoothed_;
  std::array<std::optional<DeviceParameters<float>>, 2> memory_;
  Arena numbers_;            // the memory of the following tensors
  Tensor<float> gradients_;  // in the layout of the parameters
  Tensor<double> squared_norm_;
  Tensor<float> loss_;           // the loss of the update
  Tensor<std::uint8_t> finite_;  // whether the sums for running averages are finite
  Tensor<UpdateDecision> decision_;
  Tensor<Bfloat16> rounded_;  // the parameters of the update, where products multiply bfloat16
  Graph<float> graph_;
  // The results of the submitted updates: a ring buffer, in which the earliest update has the index first_.
  std::array<Results, 2> results_;
  std::size_t first_ = 0, submitted_ = 0;
};

std::unique_ptr<UpdateStep> GpuWorkers::make_update_step(const UpdateArrays& arrays) {
  return std::make_unique<Step>(*this, arrays);
}

LossSums GpuWorkers::evaluate(ParameterValues<float>& parameters, const Examples& examples,
                              std::span<const Shard> shards, const InterruptGuard* interrupts) {
  const Device device(device_);
  const DeviceParameters<float> on_device(device, parameters);
  // Each rank computes some of the batches.
  std::vector<Shard> batches = shares_of_batches(shards, no_other_ranks());
  const Slice own = share_of_rank(std::ssize(batches), ranks_, ranks_.rank());
  batches = {batches.begin() + own.begin, batches.begin() + own.end};
  Arena locked(kLockedMemory);
  const std::span<PendingSums> sums = sums_in(locked, batches.size());
  Graph<float> graph(device, on_device.view());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (interrupts && interrupts->signal() != 0) break;
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
