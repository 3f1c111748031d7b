#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/tensor/cuda_context.h"
#include "heed/tensor/cuda_memory.h"

namespace heed {

// Steps that repeat. The problem: a step of decoding one sentence has about 75 small kernels, and the host needs
// longer to put them into the stream, one by one, than the GPU needs to run them. CUDA starts a graph of kernels at
// once, but a graph has fixed kernels, sizes and addresses.
//
// The idea: the steps of a search differ only in what they upload, such as tokens and lengths. The host computes each
// step as always, but kernels and copies are collected first, as commands. If all commands are those of an earlier
// step, with the same addresses, the graph of that step is started instead of the commands; the numbers to upload are
// in page-locked memory, from which the graph copies them. Otherwise the commands go into the stream one by one. No
// code has to say which steps repeat.
//
// What it costs: the GPU waits while the host collects. Only steps with few rows are therefore collected, in which the
// GPU would wait for the host anyway. To make a graph takes about as long as one step.
//
// An example, the steps of greedy search for one sentence after a batch of several:
//   step 1   another number of rows than before: not collected, because it cannot be like the step before
//   step 2   collected; like no other: its commands go into the stream one by one
//   step 3   collected; like step 2: a graph is made and started
//   step 4   collected; like the graph: the graph is started
//   step 17  the table of slots has 16 columns more, so that kernels have other parameters: as step 2

/// What a context puts into the stream of its GPU: a kernel, a copy to the GPU, or a product of cuBLASLt.
struct GpuCommand {
  std::string bits;                                ///< what the command does, and with which memory; see command_bits()
  std::function<void(const CudaContext&)> submit;  ///< puts the command into the stream
};

/// Returns the bytes of some values, one after the other, with zeros for the padding between the members of a class.
/// The first value tells the kinds of commands apart: it is the address of a function.
template <class... Values>
std::string command_bits(Values... values) {
  static_assert((std::is_trivially_copyable_v<Values> && ...));
  std::string out((sizeof(Values) + ... + 0), '\0');
  char* to = out.data();
  const auto append = [&](auto& value) {
#if __has_builtin(__builtin_clear_padding)
    if constexpr (std::is_class_v<std::remove_reference_t<decltype(value)>>) __builtin_clear_padding(&value);
#endif
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  };
  (append(values), ...);
  return out;
}

/// The commands of a step that are not in the stream yet, and the CUDA graphs of earlier steps. For one context.
class CudaGraphs {
 public:
  CudaGraphs();
  ~CudaGraphs();
  CudaGraphs(const CudaGraphs&) = delete;
  CudaGraphs& operator=(const CudaGraphs&) = delete;

  /// Begins a step with `rows` rows. Collects the commands of the step if the rows are few and the step before had as
  /// many, because the two steps may then be alike.
  void begin(std::int64_t rows);
  /// Ends the step, and puts the collected commands into the stream. Throws Error where CUDA refuses them.
  void end(const CudaContext& device);
  /// Ends the step after an error, and forgets the collected commands and all uploads.
  void drop(CudaContext& device);
  /// Returns whether commands are collected now.
  bool collects() const { return collects_; }
  /// Returns whether the current step may be like the step before. This stays true when submit() has ended the
  /// collecting of commands.
  bool may_repeat() const { return may_repeat_; }
  /// Adds a command to those of the step.
  void add(GpuCommand command) { commands_.push_back(std::move(command)); }
  /// Returns page-locked memory for an upload of `bytes` bytes, or null where too little is left. Two steps whose
  /// uploads have the same sizes, in the same order, get the same addresses.
  std::byte* staging(std::size_t bytes);
  /// Puts the collected commands into the stream, and collects no more commands in this step. Throws Error where CUDA
  /// refuses them.
  void submit(const CudaContext& device);
  /// Returns how many times a graph stood in for the commands of a step.
  std::int64_t started() const { return started_; }

 private:
  struct Graph;

  /// Returns the graph of the collected commands, which is made if the step before had the same; or null.
  const Graph* graph(const CudaContext& device);

  std::vector<GpuCommand> commands_, before_;  // of this step, and of the last one that was not a graph
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::size_t oldest_ = 0;  // of graphs_
  std::byte* locked_ = nullptr;
  std::size_t used_ = 0;  // bytes of locked_
  GpuEvent read_;         // behind the last step that reads from locked_
  std::int64_t rows_ = -1, started_ = 0;
  bool collects_ = false, may_repeat_ = false;
  bool refused_ = false;  // CUDA has refused to make a graph, and is not asked again
};

/// Puts a command into the stream of the context, or adds it to those of its step. submit(device) puts it into the
/// stream; `values` are those of command_bits().
template <class Submit, class... Values>
void put_command(const CudaContext& device, const Submit& submit, Values... values) {
  if (device.graphs && device.graphs->collects())
    device.graphs->add({command_bits(values...), submit});
  else
    submit(device);
}

/// Puts the collected commands, if there are any, into the stream of the context (see CudaGraphs::submit()). To be
/// called before the host waits for the commands, or where it must know at once whether CUDA accepts them.
void submit_collected(const CudaContext& device);

/// Calls step(), which computes a step with `rows` rows that may be like the one before (see CudaGraphs). If step()
/// throws, what upload_bytes() has returned to it is lost.
template <class Step>
void collect_step(CudaContext& device, std::int64_t rows, const Step& step) {
  if (!device.graphs) device.graphs = std::make_shared<CudaGraphs>();
  try {
    device.graphs->begin(rows);
    step();
    device.graphs->end(device);
  } catch (...) {
    device.graphs->drop(device);
    throw;
  }
}

}  // namespace heed
