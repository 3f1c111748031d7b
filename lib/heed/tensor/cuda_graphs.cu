#include "heed/tensor/cuda_graphs.h"

#include <algorithm>
#include <utility>

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The bytes of locked memory for the uploads of a step: enough for some thousand rows.
constexpr std::size_t kLockedBytes = std::size_t{1} << 20;
/// The largest number of rows of a step that is collected. A GPU needs longer for the kernels of more rows than the
/// host to start them.
constexpr std::int64_t kMostRows = 256;
/// How many graphs a context keeps: those of a few lengths of sentences and of hypotheses.
constexpr std::size_t kMostGraphs = 16;

bool are_same(const std::vector<GpuCommand>& a, const std::vector<GpuCommand>& b) {
  return std::ranges::equal(a, b, {}, &GpuCommand::bits, &GpuCommand::bits);
}

void submit_all(const CudaContext& device, const std::vector<GpuCommand>& commands) {
  for (const GpuCommand& command : commands) command.submit(device);
}

}  // namespace

#ifdef __CUDACC__

struct CudaGraphs::Graph {
  std::vector<GpuCommand> commands;
  cudaGraphExec_t executable = nullptr;

  /// Makes the graph of some commands, which have all been in the stream before. Without a graph, `executable` is null.
  Graph(const CudaContext& device, std::vector<GpuCommand> these) : commands(std::move(these)) {
    cudaGraph_t graph = nullptr;
    bool is_good = cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    if (is_good) {
      try {
        submit_all(device, commands);
      } catch (...) {  // the commands run without a graph then, and say what is wrong
        is_good = false;
      }
      is_good = cudaStreamEndCapture(device.stream, &graph) == cudaSuccess && is_good;
    }
    is_good = is_good && cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess;
    if (graph) cudaGraphDestroy(graph);
    // The memory that the graph needs on the GPU is allocated now, where nothing is lost if there is none.
    if (is_good && cudaGraphUpload(executable, device.stream) != cudaSuccess) {
      cudaGraphExecDestroy(executable);
      is_good = false;
    }
    if (!is_good) executable = nullptr;
    cudaGetLastError();  // so that later calls do not report it again
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (executable) cudaGraphExecDestroy(executable);
  }

  bool exists() const { return executable; }
  void start(const CudaContext& device) const {
    if (const cudaError_t error = cudaGraphLaunch(executable, device.stream); error != cudaSuccess)
      throw Error(std::string("the GPU refuses a graph of kernels: ") + cudaGetErrorString(error));
  }
};

#else

struct CudaGraphs::Graph {
  std::vector<GpuCommand> commands;
  bool is_made = emulation::make_graph();

  Graph(const CudaContext&, std::vector<GpuCommand> these) : commands(std::move(these)) {}

  bool exists() const { return is_made; }
  void start(const CudaContext& device) const { submit_all(device, commands); }
};

#endif

CudaGraphs::CudaGraphs() : locked_(static_cast<std::byte*>(kLockedMemory.allocate(kLockedBytes))) {}
CudaGraphs::~CudaGraphs() {
  kLockedMemory.free(locked_, kLockedBytes);
}

void CudaGraphs::begin(std::int64_t rows) {
  collects_ = may_repeat_ = rows == std::exchange(rows_, rows) && rows <= kMostRows;
  if (!collects_) return;
  commands_.clear();
  read_.wait();
  used_ = 0;
}

void CudaGraphs::drop(CudaContext& device) {
  collects_ = may_repeat_ = false;
  forget_uploads(device);  // some of their copies may be among the commands
  try {
    read_.record(device);
  } catch (const Error&) {  // the caller already has an error to report
  }
}

std::byte* CudaGraphs::staging(std::size_t bytes) {
  constexpr std::size_t kAlignment = 16;
  if (bytes > kLockedBytes - used_) return nullptr;
  std::byte* const out = locked_ + used_;
  used_ = std::min(kLockedBytes, (used_ + bytes + kAlignment - 1) / kAlignment * kAlignment);
  return out;
}

const CudaGraphs::Graph* CudaGraphs::graph(const CudaContext& device) {
  const auto found =
      std::ranges::find_if(graphs_, [&](const auto& made) { return are_same(made->commands, commands_); });
  if (found != graphs_.end()) return found->get();
  if (refused_ || !are_same(before_, commands_)) return nullptr;
  auto made = std::make_unique<Graph>(device, std::move(before_));
  before_.clear();
  refused_ = !made->exists();
  if (refused_) return nullptr;
  // The GPU has finished all earlier steps: begin() has waited for them.
  if (graphs_.size() < kMostGraphs) return graphs_.emplace_back(std::move(made)).get();
  graphs_[oldest_] = std::move(made);
  return graphs_[std::exchange(oldest_, (oldest_ + 1) % kMostGraphs)].get();
}

void CudaGraphs::end(const CudaContext& device) {
  may_repeat_ = false;
  submit(device);
}

void CudaGraphs::submit(const CudaContext& device) {
  if (!std::exchange(collects_, false) || commands_.empty()) return;
  if (const Graph* const same = graph(device)) {
    same->start(device);
    ++started_;
  } else {
    submit_all(device, commands_);
    before_.swap(commands_);
  }
  read_.record(device);
}

void submit_collected(const CudaContext& device) {
  if (device.graphs) device.graphs->submit(device);
}

}  // namespace heed
