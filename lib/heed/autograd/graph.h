#pragma once

#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "heed/autograd/gradient.h"
#include "heed/autograd/packed_parameters.h"
#include "heed/autograd/parameters.h"
#include "heed/base/random.h"
#include "heed/tensor/bfloat16.h"
#include "heed/tensor/context.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// A value in a computation, with room for its gradient where one is wanted. Copying copies the views.
template <class T>
struct Variable {
  Tensor<T> value;
  Gradient<T> gradient;
  /// There in place of `value`, for linear() alone, where a result is kept in half the memory: see rounded_result().
  Tensor<Bfloat16> rounded = {};

  const Shape& shape() const { return value.shape(); }
  bool tracked() const { return static_cast<bool>(gradient); }
  explicit operator bool() const { return value || rounded; }
};

/// What the dropout of a computation is drawn from.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t update = 0;  ///< number of the optimiser update; below 2^36
  std::uint32_t shard = 0;   ///< number of the part of the update's batch

  /// The stream of the computation's dropout number `op`, below 2^20. The low 12 bits of `shard` and `op` are the
  /// stream's `minor`, and their other bits lie above the update in `major`.
  RandomStream stream(std::uint32_t op) const {
    return {seed, RandomUse::dropout,
            update | static_cast<std::uint64_t>(shard >> 12) << 36 | static_cast<std::uint64_t>(op >> 12) << 56,
            (shard & 0xFFF) << 12 | (op & 0xFFF)};
  }
};

/// One computation on one device context: hands out memory and parameters, and records how to go back.
///
/// Training: construct with gradients, call modules and ops, then backward(loss). Inference: construct without
/// gradients; nothing is recorded, dropout is off. A graph is reused for the next computation after reset(); in the
/// steady state it allocates nothing from the heap.
template <class T>
class Graph {
 public:
  /// Inference. `packed`, where given, holds what ops pack of the parameters.
  Graph(CpuContext& device, ParameterValues<T>& parameters, PackedParameters<T>* packed = nullptr)
      : device_(device), parameters_(parameters), packed_(packed) {}
  /// Training; gradients of parameters are added to `gradients` (same layout).
  Graph(CpuContext& device, ParameterValues<T>& parameters, ParameterValues<T>& gradients)
      : device_(device), parameters_(parameters), gradients_(&gradients) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  CpuContext& device() { return device_; }
  Arena& arena() { return device_.arena; }
  bool recording() const { return gradients_ != nullptr; }
  /// Null where parameters may change from one computation to the next.
  PackedParameters<T>* packed() { return packed_; }

  /// A parameter; with `shape`, the view over it and those that follow it (see ParameterLayout).
  Variable<T> parameter(ParameterId id) { return parameter(id, parameters_.layout()[id].shape); }
  Variable<T> parameter(ParameterId id, const Shape& shape) {
    return {parameters_.view(id, shape), gradients_ ? Gradient<T>(gradients_->view(id, shape)) : Gradient<T>()};
  }

  /// An op's result: uninitialised value, empty gradient (none when not recording), which ends when the way back has
  /// passed what the op records.
  Variable<T> result(const Shape& shape) {
    const Variable<T> out = result_in(arena().template tensor<T>(shape));
    if (recording()) results_.back().memory = {out.value.data(), shape.size()};
    return out;
  }
  /// The same, in the memory of another result whose value nobody needs.
  Variable<T> result_in(Tensor<T> value) {
    if (!recording()) return {value, {}};
    results_.push_back({new_gradient(), {}});
    return {value, {value.shape(), results_.back().gradient}};
  }
  /// A result like that of result(), rounded to bfloat16 for linear() alone: where products round it anyway. Only when
  /// recording.
  Variable<T> rounded_result(const Shape& shape) {
    const Tensor<Bfloat16> rounded = arena().template tensor<Bfloat16>(shape);
    const auto size = shape.size() * static_cast<std::int64_t>(sizeof(Bfloat16)) / static_cast<std::int64_t>(sizeof(T));
    results_.push_back({new_gradient(), {reinterpret_cast<T*>(rounded.data()), size}});
    return {{}, {shape, results_.back().gradient}, rounded};
  }
  /// A given value; its gradient is computed where `tracked`, and stays until reset().
  Variable<T> input(Tensor<T> value, bool tracked = false) {
    if (!tracked || !recording()) return {value, {}};
    return {value, {value.shape(), new_gradient()}};
  }

  /// Keeps `backward()` for the way back of the results since the last one was kept. What it captures must be trivially
  /// destructible: views and numbers.
  template <class Backward>
  void record(Backward backward) {
    static_assert(std::is_trivially_destructible_v<Backward>);
    if (!recording()) return;
    void* memory = arena().allocate(sizeof(Backward));
    tape_.push_back({[](void* self) { (*static_cast<Backward*>(self))(); }, new (memory) Backward(std::move(backward)),
                     results_.size()});
  }

  /// Goes back from a scalar: sets its gradient to 1 and runs what was recorded, last first. When an op has been
  /// passed, its results end, values and gradients, and the gradients of those before it may take their memory.
  void backward(const Variable<T>& loss) {
    loss.gradient.sum()[0] = 1;
    for (; !tape_.empty(); tape_.pop_back()) {
      tape_.back().run(tape_.back().state);
      const std::size_t before = tape_.size() > 1 ? tape_[tape_.size() - 2].results : 0;
      for (std::size_t i = before; i < tape_.back().results; ++i) {
        results_[i].gradient->give_back();
        if (results_[i].memory.size >= kWorthTaking) gradients_of_results_.lend(results_[i].memory);
      }
    }
  }

  /// Starts a new computation; all variables of the last one end.
  void reset() {
    tape_.clear();
    results_.clear();
    gradients_of_results_.reset();
    arena().reset();
    dropout_ops_ = 0;
  }

  /// Bytes that values and gradients hold.
  std::size_t reserved() const { return device_.arena.reserved() + gradients_of_results_.reserved(); }

  /// Dropout draws from this key; ops number themselves in order of calls.
  void set_dropout(const DropoutKey& key) { dropout_ = key; }
  /// The random stream of the next op that drops.
  RandomStream next_dropout() { return dropout_.stream(dropout_ops_++); }

 private:
  struct Entry {
    void (*run)(void*);
    void* state;
    std::size_t results;  // up to this one
  };
  struct Result {
    GradientState<T>* gradient;
    typename GradientPool<T>::Piece memory;  // of its value, where it has its own
  };
  static constexpr std::int64_t kWorthTaking = 1 << 14;  // elements

  GradientState<T>* new_gradient() {
    return new (arena().allocate(sizeof(GradientState<T>))) GradientState<T>{&gradients_of_results_};
  }

  CpuContext& device_;
  ParameterValues<T>& parameters_;
  ParameterValues<T>* gradients_ = nullptr;
  PackedParameters<T>* packed_ = nullptr;
  std::vector<Entry> tape_;
  GradientPool<T> gradients_of_results_;
  std::vector<Result> results_;
  DropoutKey dropout_;
  std::uint32_t dropout_ops_ = 0;
};

/// The lifetime of results that only their surroundings need: at its end their memory is given back, unless the graph
/// is recording, since the way back needs all.
class InferenceScope {
 public:
  template <class T>
  explicit InferenceScope(Graph<T>& graph) {
    if (!graph.recording()) scope_.emplace(graph.arena());
  }

 private:
  std::optional<ArenaScope> scope_;
};

}  // namespace heed
