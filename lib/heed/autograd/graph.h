#pragma once

#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "heed/autograd/gradient.h"
#include "heed/autograd/packed_parameters.h"
#include "heed/autograd/parameters.h"
#include "heed/base/random.h"
#include "heed/tensor/bfloat16.h"
#include "heed/tensor/device.h"
#include "heed/tensor/packed.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// A value in a computation and, if the gradient is to be computed, the gradient of the value. Copying a Variable
/// copies views of the numbers and not the numbers.
template <class T>
struct Variable {
  Tensor<T> value;
  Gradient<T> gradient;
  /// The value of the variable rounded to bfloat16, which matrix products read; absent if no rounded value is stored.
  /// If Graph::rounded_result() created the variable, `rounded` is the only stored value, in half the memory, and
  /// `value` is absent. Otherwise `rounded` is stored in addition to `value`.
  Tensor<Bfloat16> rounded = {};

  const Shape& shape() const { return is_rounded() ? rounded.shape() : value.shape(); }
  /// Tells whether the value is stored in bfloat16 alone.
  bool is_rounded() const { return rounded && !value; }
  /// Tells whether the variable's gradient is to be computed.
  bool tracked() const { return static_cast<bool>(gradient); }
  explicit operator bool() const { return value || rounded; }
};

/// The key that selects the random numbers of an update's dropout masks. Equal keys give equal masks.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t update = 0;  ///< number of the optimiser update
};

/// The random numbers of one dropout op: a stream for each sequence. A stream is selected by the seed, the update, the
/// op, the step of a loop and the sequence's number within the update, and by nothing else, so that a sequence has the
/// same masks however the update's batch is cut into shards. Only the low bits of large numbers count: 32 of the
/// update, 16 of the op, 16 of the step and 24 of the sequence.
struct DropoutStreams {
  DropoutKey key;
  std::uint32_t op = 0, step = 0, first_sequence = 0;
  std::span<const std::int32_t> sequence_numbers = {};  ///< see Graph::set_rows()

  /// Returns the stream of the sequence number `sequence` of the op's rows.
  RandomStream of(int sequence) const {
    const auto index = static_cast<std::size_t>(sequence);
    const auto number = static_cast<std::uint32_t>(sequence_numbers.empty() ? sequence : sequence_numbers[index]);
    return {key.seed, RandomUse::dropout,
            (key.update & 0xFFFFFFFF) | std::uint64_t{op & 0xFFFF} << 32 | std::uint64_t{step & 0xFFFF} << 48,
            (first_sequence + number) & 0xFFFFFF};
  }
};

/// One computation on one device. A graph provides the memory of results and the views of parameters, and records on a
/// tape what the backward pass has to do.
///
/// Training: the caller constructs the graph with gradients, calls modules and ops, and then backward(loss). Inference:
/// the caller constructs the graph without gradients; the graph records nothing, and dropout is off. After reset() the
/// graph serves the next computation; after the first few computations a graph allocates nothing from the heap.
template <class T>
class Graph {
 public:
  /// Creates a graph for inference. `packed`, if not null, keeps the packed weights of `parameters` from one
  /// computation to the next.
  Graph(Device device, ParameterView<T> parameters, PackedParameters<T>* packed = nullptr)
      : device_(device), parameters_(parameters), packed_(packed) {}
  /// Creates a graph for training. backward() adds the gradients of the parameters to `gradients`, an array with the
  /// same layout as `parameters`. Both are in the memory of the device.
  Graph(Device device, ParameterView<T> parameters, ParameterView<T> gradients)
      : device_(device), parameters_(parameters), gradients_(gradients) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Lets the following computations add the gradients of the parameters to another array.
  void set_gradients(ParameterView<T> gradients) { gradients_ = gradients; }

  Device device() const { return device_; }
  /// Calls kernels: function(context) with the context of the device (see Device). Returns the result.
  template <class Function>
  decltype(auto) run(Function&& function) const {
    return device_.run(std::forward<Function>(function));
  }
  /// Returns the arena of tensors, in the memory of the device.
  Arena& arena() { return device_.arena(); }
  /// Returns the arena of arrays that the host reads or writes.
  Arena& host_arena() { return device_.host_arena(); }
  /// Tells whether the graph records backward functions: true in training, false in inference.
  bool recording() const { return gradients_.has_value(); }
  /// Returns the packed weights of the parameters; null if parameters may change from one computation to the next.
  PackedParameters<T>* packed() { return packed_; }

  /// Returns the variable of a parameter: the value and, in training, the gradient.
  Variable<T> parameter(ParameterId id) { return parameter(id, parameters_.layout()[id].shape); }
  /// Returns several parameters as one variable of this shape: the parameter `id` and the parameters that follow in
  /// memory without a gap. For example, query, key and value weights [D, D] become one matrix [3D, D] (see
  /// ParameterLayout).
  Variable<T> parameter(ParameterId id, const Shape& shape) {
    return {parameters_.view(id, shape), gradients_ ? Gradient<T>(gradients_->view(id, shape)) : Gradient<T>(),
            parameters_.rounded(id, shape)};
  }

  /// Creates the variable for the result of an op: an uninitialised value and, in training, an empty gradient. Value
  /// and gradient become invalid in the backward pass, after the backward function of the op has run.
  Variable<T> result(const Shape& shape) {
    const Variable<T> out = result_in(arena().template tensor<T>(shape));
    if (recording()) results_.back().memory = {out.value.data(), shape.size()};
    return out;
  }
  /// Creates the variable for the result of an op in existing memory: `value` is the memory of another result whose
  /// value no op reads any more.
  Variable<T> result_in(Tensor<T> value) {
    if (!recording()) return {value, {}};
    results_.push_back({new_gradient(), {}});
    return {value, {value.shape(), results_.back().gradient}};
  }
  /// Creates the variable for the result of an op that is stored as bfloat16 only (Variable::rounded), in half the
  /// memory. Only one op may read such a result: an op that can read bfloat16, in most cases because its matrix
  /// products would round the result anyway. See ops/rounded_result.h.
  Variable<T> rounded_result(const Shape& shape) {
    const Tensor<Bfloat16> rounded = arena().template tensor<Bfloat16>(shape);
    if (!recording()) return {{}, {}, rounded};
    const auto size = shape.size() * static_cast<std::int64_t>(sizeof(Bfloat16)) / static_cast<std::int64_t>(sizeof(T));
    results_.push_back({new_gradient(), {reinterpret_cast<T*>(rounded.data()), size}});
    const Variable<T> out{{}, {shape, results_.back().gradient}, rounded};
    out.gradient.allow_rounding();
    return out;
  }
  /// Creates a variable with an existing value. If `tracked`, backward() computes the variable's gradient, which stays
  /// valid until reset().
  Variable<T> input(Tensor<T> value, bool tracked = false) {
    if (!tracked || !recording()) return {value, {}};
    return {value, {value.shape(), new_gradient()}};
  }

  /// Records the backward function of an op. The results of the op are all results that were created since the last
  /// call of record(). The backward pass calls backward(context) with the context of the device (see Device).
  /// `backward` may capture views and numbers only: the function object must be trivially destructible. Does nothing in
  /// inference.
  template <class Backward>
  void record(Backward backward) {
    static_assert(std::is_trivially_destructible_v<Backward>);
    if (!recording()) return;
    void* memory = host_arena().allocate(sizeof(Backward));
    tape_.push_back({[](void* self, Device device) { device.run(*static_cast<Backward*>(self)); },
                     new (memory) Backward(std::move(backward)), results_.size()});
  }

  /// Runs the backward pass from a scalar `loss`: sets the gradient of `loss` to 1 and calls the recorded backward
  /// functions, the last one first. After the backward function of an op, the values and gradients of the op's results
  /// become invalid, and gradients of earlier results may reuse their memory.
  void backward(const Variable<T>& loss) {
    device_.fill(loss.gradient.sum(), T(1));
    loss.gradient.set_one();
    for (; !tape_.empty(); tape_.pop_back()) {
      tape_.back().run(tape_.back().state, device_);
      const std::size_t before = tape_.size() > 1 ? tape_[tape_.size() - 2].results : 0;
      for (std::size_t i = before; i < tape_.back().results; ++i) {
        results_[i].gradient->give_back();
        if (results_[i].memory.size >= kWorthTaking) gradients_of_results_.lend(results_[i].memory);
      }
    }
  }

  /// Starts a new computation: all variables of the previous computation become invalid.
  void reset() {
    tape_.clear();
    results_.clear();
    gradients_of_results_.reset();
    device_.reset();
    dropout_ = {.key = dropout_.key, .first_sequence = dropout_.first_sequence};
    rows_ = {};
  }

  /// Returns the number of bytes that the values and gradients of the graph have allocated from the heap. Parameters do
  /// not count.
  std::size_t reserved() const { return device_.arena().reserved() + gradients_of_results_.reserved(); }

  /// Sets the key that selects the random numbers of this computation's dropout masks, and the number within the update
  /// of the computation's first sequence.
  void set_dropout(const DropoutKey& key, std::uint32_t first_sequence = 0) {
    dropout_.key = key;
    dropout_.first_sequence = first_sequence;
  }
  /// Says to which sequences the rows of the tensors [rows, ...] of the next ops belong, for their dropout. Sequence b
  /// of `rows` has the number sequence_numbers[b] within the computation, or b where `sequence_numbers` is empty. Both
  /// arrays must stay in memory until the next call of set_rows() or reset(). Without a call, all rows are one
  /// sequence.
  void set_rows(PackedOffsets rows, std::span<const std::int32_t> sequence_numbers = {}) {
    rows_ = rows;
    dropout_.sequence_numbers = sequence_numbers;
  }
  PackedOffsets rows() const { return rows_; }
  /// Returns the random numbers of the next dropout op. Dropout ops are numbered in the order of their calls.
  DropoutStreams next_dropout() {
    const DropoutStreams out = dropout_;
    ++dropout_.op;
    return out;
  }
  /// Returns the key of this computation's random numbers, and the number within the update of its first sequence.
  const DropoutKey& dropout_key() const { return dropout_.key; }
  std::uint32_t first_sequence() const { return dropout_.first_sequence; }
  /// Returns the number of the next dropout op.
  std::uint32_t dropout_op() const { return dropout_.op; }
  /// Begins step number `step` of a loop: its dropout ops get the numbers op, op + 1, ..., where `op` is the number of
  /// the loop's first dropout op in every step, and are told apart by the number of the step. If each step counted ops
  /// of its own, the numbers of the ops after the loop would depend on the number of steps, and thus on the batch.
  /// After the loop, `step` is to be set to 0.
  void set_dropout_step(std::uint32_t op, std::int64_t step) {
    dropout_.op = op;
    dropout_.step = static_cast<std::uint32_t>(step);
  }

 private:
  /// One recorded backward function on the tape.
  struct Entry {
    void (*run)(void*, Device);
    void* state;
    std::size_t results;  // number of results in results_ when the function was recorded
  };
  /// The memory of one op's result that backward() frees: of the gradient and of the value.
  struct Result {
    GradientState<T>* gradient;
    typename GradientPool<T>::Piece memory;  // memory of the value; absent if another result owns the memory
  };
  /// The smallest size, in elements, of a value whose memory backward() lends to the pool of gradients.
  static constexpr std::int64_t kWorthTaking = 1 << 14;

  GradientState<T>* new_gradient() {
    return new (host_arena().allocate(sizeof(GradientState<T>))) GradientState<T>{&gradients_of_results_};
  }

  Device device_;
  ParameterView<T> parameters_;
  std::optional<ParameterView<T>> gradients_;
  PackedParameters<T>* packed_ = nullptr;
  std::vector<Entry> tape_;
  GradientPool<T> gradients_of_results_{device_};
  std::vector<Result> results_;
  DropoutStreams dropout_;  // those of the next dropout op
  PackedOffsets rows_;
};

/// Frees, at the end of a C++ scope, the memory of all results that ops created within the scope. Does nothing in
/// training, because the backward pass reads the results.
class InferenceScope {
 public:
  template <class T>
  explicit InferenceScope(Graph<T>& graph) {
    if (graph.recording()) return;
    scope_.emplace(graph.arena());
    if (&graph.host_arena() != &graph.arena()) host_scope_.emplace(graph.host_arena());
  }

 private:
  std::optional<ArenaScope> scope_, host_scope_;
};

}  // namespace heed
