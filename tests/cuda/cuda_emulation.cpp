#include "cuda_emulation.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/random.h"
#include "heed/tensor/bfloat16.h"
#include "heed/tensor/memory.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace heed::emulation {
namespace {

constexpr int kWarp = 32;
constexpr std::size_t kStackBytes = std::size_t{128} << 10;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// What a thread waits for.
enum class Wait { nothing, block, warp };

/// A place in a program at which a function has stopped, and from which it goes on.
struct Stop {
  ucontext_t context{};
  void* registers[5] = {};  // of __builtin_setjmp()
  bool has_run = false;
};

// swapcontext() calls the operating system each time, which would take most of the time of a test. The compiler's own
// jumps between contexts that have begun do not. AddressSanitizer takes each longjmp() and swapcontext() for the end of
// all functions of a stack, and clears what it knows of them. The functions here are hidden from it; to_scheduler() and
// go_on() tell it that the stack changes.

[[noreturn]] __attribute__((noinline, no_sanitize("address"))) void jump_to(Stop& to) {
  __builtin_longjmp(to.registers, 1);
}

/// Stops at `from`, and goes on at `to`.
__attribute__((noinline, no_sanitize("address"))) void go_on_at(Stop& to, Stop& from) {
  from.has_run = true;
  if (__builtin_setjmp(from.registers) != 0) return;
  if (to.has_run) jump_to(to);
  setcontext(&to.context);
}

/// A function with a stack of its own, which runs one thread of a block after another until a thread has to wait.
struct Fibre {
  Stop stop;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  void* sanitizer_stack = nullptr;
};

/// A thread of a block.
struct Thread {
  Place place;
  int number = 0;          // within the block
  Fibre* fibre = nullptr;  // where the thread has stopped; null before its start
  Wait wait = Wait::nothing;
  unsigned mask = 0;        // the lanes that it waits for
  std::source_location at;  // where it waits for them
  bool ended = false;
  std::uint64_t value = 0;                                 // what it hands to the other lanes
  int source = 0;                                          // the lane whose value it wants
  std::uint64_t received = 0;                              // the value that it has got
  unsigned votes = 0;                                      // the lanes of `mask` whose value is not 0
  std::vector<std::pair<void*, const void*>> late_copies;  // of copy_later()
};

/// The memory of the GPU: areas of whole pages, which are protected unless the emulated GPU reads or writes them.
class GpuMemory {
 public:
  void* allocate(std::size_t bytes) {
    std::size_t taken = bytes;
    for (const auto& area : areas_) taken += area.second;
    if (taken > limit_) throw OutOfGpuMemory("the emulated GPU has no " + std::to_string(bytes) + " bytes left");
    // An area that is as large as a huge page begins where one may begin, and is mapped by huge pages where the system
    // has them: the system protects a huge page as fast as a small one.
    const std::size_t spare = bytes < kHugePage ? 0 : kHugePage;
    void* const mapped = mmap(nullptr, bytes + spare, protection(), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw Error("internal: no " + std::to_string(bytes) + " bytes for the emulated GPU");
    auto* memory = static_cast<std::byte*>(mapped);
    if (spare > 0) {
      const std::size_t before = -reinterpret_cast<std::uintptr_t>(mapped) % kHugePage;
      memory += before;
      if (before > 0) munmap(mapped, before);
      if (before < spare) munmap(memory + bytes, spare - before);
      madvise(memory, bytes, MADV_HUGEPAGE);
    }
    areas_.emplace_back(memory, bytes);
    return memory;
  }
  void free(void* memory) {
    const auto area = std::ranges::find(areas_, memory, &std::pair<void*, std::size_t>::first);
    munmap(area->first, area->second);
    areas_.erase(area);
  }
  bool empty() const { return areas_.empty(); }
  void limit(std::size_t bytes) { limit_ = bytes; }
  /// Returns whether an address lies in the memory, or just behind an area.
  bool has(std::uintptr_t address) const {
    return std::ranges::any_of(areas_, [address](const auto& area) {
      const auto begin = reinterpret_cast<std::uintptr_t>(area.first);
      return begin <= address && address <= begin + area.second;
    });
  }
  /// Opens the memory for reading and writing, or protects it again.
  void open(bool is_open) {
    open_ = is_open;
    for (const auto& [memory, bytes] : areas_) mprotect(memory, bytes, protection());
  }

 private:
  int protection() const { return open_ ? PROT_READ | PROT_WRITE : PROT_NONE; }

  std::vector<std::pair<void*, std::size_t>> areas_;
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  bool open_ = false;
};
thread_local GpuMemory gpu_memory;
thread_local bool host_memory_allowed = false;

/// Opens the memory of the GPU within a C++ scope.
struct OpenMemory {
  OpenMemory() { gpu_memory.open(true); }
  ~OpenMemory() { gpu_memory.open(false); }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

/// The memory of the host that is locked.
class LockedMemory {
 public:
  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    void* const memory = ::operator new(bytes);
    areas_.emplace(static_cast<const std::byte*>(memory), bytes);
    return memory;
  }
  void free(void* memory) {
    const std::lock_guard lock(mutex_);
    areas_.erase(static_cast<const std::byte*>(memory));
    ::operator delete(memory);
  }
  bool has(const void* address) const {
    const std::lock_guard lock(mutex_);
    const auto* const byte = static_cast<const std::byte*>(address);
    const auto next = areas_.upper_bound(byte);
    return next != areas_.begin() && byte < std::prev(next)->first + std::prev(next)->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const std::byte*, std::size_t> areas_;
};
LockedMemory locked_memory;

/// The copies of a stream that are not done yet.
class LateCopies {
 public:
  void add(void* to, const void* from, std::size_t bytes) {
    if (locked_memory.has(from)) {
      uploads_.push_back({to, from, bytes});
      return;
    }
    upload();
    const OpenMemory open;
    const auto* const begin = static_cast<const std::byte*>(from);
    if (locked_memory.has(to)) {
      downloads_.push_back({to, {begin, begin + bytes}});
      return;
    }
    download(point());
    std::copy_n(begin, bytes, static_cast<std::byte*>(to));
  }
  /// Reads all bytes that go to the GPU.
  void upload() {
    if (uploads_.empty()) return;
    const OpenMemory open;
    for (const Upload& copy : std::exchange(uploads_, {}))
      std::copy_n(static_cast<const std::byte*>(copy.from), copy.bytes, static_cast<std::byte*>(copy.to));
  }
  /// Delivers what was copied from the GPU before a point.
  void download(std::uintptr_t until) {
    for (; !downloads_.empty() && downloaded_ < until; ++downloaded_) {
      std::ranges::copy(downloads_.front().bytes, static_cast<std::byte*>(downloads_.front().to));
      downloads_.pop_front();
    }
  }
  std::uintptr_t point() const { return downloaded_ + downloads_.size(); }

 private:
  struct Upload {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  struct Download {
    void* to;
    std::vector<std::byte> bytes;
  };
  std::vector<Upload> uploads_;
  std::deque<Download> downloads_;
  std::uintptr_t downloaded_ = 1;  // how many downloads have arrived, and 1, so that no point is 0
};
thread_local LateCopies late_copies;

class Block;
thread_local ThreadOrder thread_order = ThreadOrder::ascending;
thread_local Block* running = nullptr;

/// Runs the threads of one block after another block.
class Block {
 public:
  Block(dim3 size, dim3 grid, std::size_t shared_bytes, const std::function<void()>& kernel)
      : kernel_(kernel), shared_bytes_(shared_bytes) {
    threads_.resize(std::size_t{size.x} * size.y * size.z);
    order_.resize(threads_.size());
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const auto n = static_cast<unsigned>(i);
      threads_[i].number = static_cast<int>(i);
      threads_[i].place = {{n % size.x, n / size.x % size.y, n / size.x / size.y}, {}, size, grid};
    }
  }

  void run(dim3 block) {
    // A new array for each block, so that AddressSanitizer knows its bounds, and what the block before left is gone.
    shared_ = std::make_unique_for_overwrite<std::byte[]>(shared_bytes_);
    std::fill_n(shared_.get(), shared_bytes_, std::byte{0xFF});
    left_ = threads_.size();
    for (Thread& thread : threads_) {
      thread.place.block = block;
      thread.fibre = nullptr;
      thread.ended = false;
      thread.late_copies.clear();
    }
    Block* const before = std::exchange(running, this);
    while (left_ > 0 && !thrown_) {
      if (!pass() && !release()) {
        running = before;
        fail();
      }
    }
    running = before;
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  Thread& current() { return *current_; }
  /// Returns the value that a lane of the warp of the current thread has handed to the others.
  std::uint64_t value_of(int lane) const {
    return threads_[static_cast<std::size_t>(current_->number / kWarp * kWarp + lane)].value;
  }
  void* shared() { return shared_.get(); }

  /// Stops the current thread until the threads that it waits for wait, too.
  void wait(Wait wait, unsigned mask = 0, std::source_location at = {}) {
    Thread& thread = current();
    thread.wait = wait;
    thread.mask = mask;
    thread.at = at;
    thread.fibre = fibre_;
    ++at_;
    to_scheduler();
  }

 private:
  /// The first function of every fibre.
  static void begin() {
    running->arrived(nullptr);
    for (;;) {
      Block& block = *running;
      try {
        block.kernel_();
        if (!block.current_->late_copies.empty())
          throw Error("emulation of CUDA: a thread ends before it waits for its copies");
      } catch (...) {
        block.thrown_ = std::current_exception();
      }
      block.current_->ended = true;
      --block.left_;
      ++block.at_;
      // A thread that has not begun needs no stack of its own yet: it begins on this one.
      if (Thread* const next = block.next(); next && !next->fibre) {
        block.current_ = next;
        continue;
      }
      block.free_.push_back(block.fibre_);
      block.to_scheduler();
    }
  }

  /// Returns the next thread in the order of this pass that waits for nothing; null where there is none.
  Thread* next() {
    for (; at_ < order_.size() && !thrown_; ++at_) {
      Thread& thread = threads_[order_[at_]];
      if (!thread.ended && thread.wait == Wait::nothing) return &thread;
    }
    return nullptr;
  }

  void to_scheduler() {
    Fibre& own = *fibre_;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&own.sanitizer_stack, scheduler_bottom_, scheduler_size_);
#endif
    go_on_at(scheduler_, own.stop);
    running->arrived(&own);
  }
  /// Tells AddressSanitizer that a fibre goes on, or begins where `fibre` is null.
  void arrived([[maybe_unused]] Fibre* fibre) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fibre ? fibre->sanitizer_stack : nullptr, &scheduler_bottom_, &scheduler_size_);
#endif
  }

  Fibre* new_fibre() {
    Fibre& fibre = *fibres_.emplace_back(std::make_unique<Fibre>());
    ucontext_t& context = fibre.stop.context;
    getcontext(&context);
    context.uc_stack.ss_sp = fibre.stack.get();
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, &Block::begin, 0);
    return &fibre;
  }
  Fibre* free_fibre() {
    if (free_.empty()) return new_fibre();
    Fibre* const fibre = free_.back();
    free_.pop_back();
    return fibre;
  }

  /// Lets a thread run, and the threads after it that begin on the same stack, until one waits.
  void go_on(Thread& thread) {
    current_ = &thread;
    fibre_ = thread.fibre ? thread.fibre : free_fibre();
#if defined(__SANITIZE_ADDRESS__)
    void* own = nullptr;
    __sanitizer_start_switch_fiber(&own, fibre_->stack.get(), kStackBytes);
#endif
    go_on_at(fibre_->stop, scheduler_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
  }

  /// Lets each thread that waits for nothing run until it waits or ends. Returns whether any thread ran.
  bool pass() {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (thread_order == ThreadOrder::descending) std::reverse(order_.begin(), order_.end());
    if (thread_order == ThreadOrder::shuffled)
      for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_.below(i, drawn_++)]);
    at_ = 0;
    bool ran = false;
    while (Thread* const thread = next()) {
      go_on(*thread);
      ran = true;
    }
    return ran;
  }

  /// Lets go on the threads that have found each other. Returns whether there are any.
  bool release() {
    const auto waits = [](Wait wait) { return [wait](const Thread& f) { return f.ended || f.wait == wait; }; };
    bool released = false;
    if (std::ranges::all_of(threads_, waits(Wait::block))) {
      for (Thread& thread : threads_) thread.wait = Wait::nothing;
      released = left_ > 0;
    }
    for (std::size_t begin = 0; begin < threads_.size(); begin += kWarp)
      released =
          release_warp(std::span(threads_).subspan(begin, std::min<std::size_t>(kWarp, threads_.size() - begin))) ||
          released;
    return released;
  }

  /// Lets the lanes of a warp exchange their values and go on, where all lanes of a mask wait for each other. Returns
  /// whether there are any. The lanes of a last warp that is not full do not exist.
  static bool release_warp(std::span<Thread> warp) {
    bool released = false;
    for (const Thread& first : warp) {
      if (first.ended || first.wait != Wait::warp) continue;
      const unsigned mask = first.mask;
      const auto is_meant = [&](const Thread& lane) { return (mask >> (&lane - warp.data()) & 1) != 0; };
      if (!std::ranges::all_of(warp, [&](const Thread& lane) {
            return !is_meant(lane) || (!lane.ended && lane.wait == Wait::warp && lane.mask == mask &&
                                       lane.at.line() == first.at.line() && lane.at.column() == first.at.column());
          }))
        continue;
      unsigned votes = 0;
      for (const Thread& lane : warp)
        if (is_meant(lane) && lane.value != 0) votes |= 1U << (&lane - warp.data());
      for (Thread& lane : warp) {
        if (!is_meant(lane)) continue;
        const bool is_given = lane.source >= 0 && lane.source < std::ssize(warp) && (mask >> lane.source & 1) != 0;
        lane.received = is_given ? warp[static_cast<std::size_t>(lane.source)].value : lane.value;
        lane.votes = votes;
        lane.wait = Wait::nothing;
      }
      released = true;
    }
    return released;
  }

  [[noreturn]] void fail() {
    const auto count = [&](Wait wait) {
      return std::to_string(
          std::ranges::count_if(threads_, [wait](const Thread& f) { return !f.ended && f.wait == wait; }));
    };
    throw Error("internal: the threads of a block wait for each other for ever: " + count(Wait::block) +
                " at a barrier of the block, " + count(Wait::warp) + " at one of a warp, " +
                std::to_string(threads_.size() - left_) + " have ended");
  }

  const std::function<void()>& kernel_;
  const std::size_t shared_bytes_;
  std::vector<Thread> threads_;
  std::vector<std::size_t> order_;
  std::unique_ptr<std::byte[]> shared_;
  Stop scheduler_;
  const void* scheduler_bottom_ = nullptr;
  std::size_t scheduler_size_ = 0;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Fibre*> free_;   // those on which no thread has stopped
  Thread* current_ = nullptr;  // the thread that runs, and the fibre on which it does
  Fibre* fibre_ = nullptr;
  std::size_t at_ = 0;    // the place in order_ of the thread that runs
  std::size_t left_ = 0;  // how many threads have not ended
  std::exception_ptr thrown_;
  const RandomStream random_{1, RandomUse::sampling};
  std::uint64_t drawn_ = 0;
};

}  // namespace

void set_thread_order(ThreadOrder order) {
  thread_order = order;
}

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024)
    throw Error("internal: a block of " + std::to_string(threads) + " threads (1 to 1024 are possible)");
  late_copies.upload();
  const OpenMemory open;
  Block threads_of_block(block, grid, shared_bytes, kernel);
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t n = thread_order == ThreadOrder::descending ? blocks - 1 - i : i;
    threads_of_block.run({static_cast<unsigned>(n % grid.x), static_cast<unsigned>(n / grid.x % grid.y),
                          static_cast<unsigned>(n / grid.x / grid.y)});
  }
}

void* allocate_on_gpu(std::size_t bytes) {
  return gpu_memory.allocate(bytes);
}
void limit_gpu_memory(std::size_t bytes) {
  gpu_memory.limit(bytes);
}
void free_on_gpu(void* memory, std::size_t) {
  wait_until(point());
  gpu_memory.free(memory);
}
AllowHostMemory::AllowHostMemory() {
  host_memory_allowed = true;
}
AllowHostMemory::~AllowHostMemory() {
  host_memory_allowed = false;
}
void require_memory_of_gpu(const std::uintptr_t* words, std::size_t n) {
  // Tests of single kernels give them memory of the host, whose bounds AddressSanitizer knows, and allocate no other.
  if (gpu_memory.empty() || host_memory_allowed) return;
  // Only what the operating system has given to this process is an address; another word is a number.
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto is_address = [&](std::uintptr_t word) {
    unsigned char state = 0;
    return word >= page_bytes && mincore(reinterpret_cast<void*>(word / page_bytes * page_bytes), 1, &state) == 0;
  };
  for (const std::uintptr_t word : std::span(words, n))
    if (!gpu_memory.has(word) && is_address(word))
      throw Error("emulation of CUDA: a kernel gets an address of memory of the host");
}
void* allocate_locked(std::size_t bytes) {
  return locked_memory.allocate(bytes);
}
void free_locked(void* memory, std::size_t) {
  wait_until(point());
  locked_memory.free(memory);
}
void copy(void* to, const void* from, std::size_t bytes) {
  late_copies.add(to, from, bytes);
}
std::uintptr_t point() {
  return late_copies.point();
}
void wait_until(std::uintptr_t point) {
  late_copies.upload();
  late_copies.download(point);
}

namespace {
thread_local bool graphs_are_refused = false;
thread_local int made_graphs = 0;
}  // namespace
bool make_graph() {
  if (!graphs_are_refused) ++made_graphs;
  return !graphs_are_refused;
}
void refuse_graphs(bool refuse) {
  graphs_are_refused = refuse;
}
int graphs_made() {
  return made_graphs;
}

const Place& place() {
  return running->current().place;
}

void* block_memory() {
  return running->shared();
}

void wait_for_block() {
  running->wait(Wait::block);
}

int lane() {
  return running->current().number % kWarp;
}

std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, std::source_location at) {
  Thread& thread = running->current();
  thread.value = value;
  thread.source = source;
  running->wait(Wait::warp, mask, at);
  return thread.received;
}

unsigned ballot(unsigned mask, bool predicate, std::source_location at) {
  Thread& thread = running->current();
  thread.value = predicate ? 1 : 0;
  running->wait(Wait::warp, mask, at);
  return thread.votes;
}

void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  constexpr unsigned kAll = 0xFFFFFFFF;
  struct Operands {
    const std::uint32_t *a, *b;
  };
  const Operands own{a, b};
  const auto address = reinterpret_cast<std::uintptr_t>(&own);
  exchange(kAll, address, 0);
  const auto of_lane = [](int lane) {
    return reinterpret_cast<const Operands*>(static_cast<std::uintptr_t>(running->value_of(lane)));
  };
  const auto half = [](std::uint32_t word, int which) {
    return from_bfloat16(static_cast<Bfloat16>(word >> 16 * which & 0xFFFF));
  };
  const int g = lane() / 4, t = lane() % 4;
  float sums[4];
  for (int e = 0; e < 4; ++e) {
    const int row_half = e / 2, column = 2 * t + e % 2;
    sums[e] = c[e];
    for (int k = 0; k < 16; ++k) {
      // Column k of A and row k of B are in the words k / 8 of the lanes whose t is k % 8 / 2.
      const std::uint32_t left = of_lane(4 * g + k % 8 / 2)->a[2 * (k / 8) + row_half],
                          right = of_lane(4 * column + k % 8 / 2)->b[k / 8];
      sums[e] += half(left, k % 2) * half(right, k % 2);
    }
  }
  // Waits until all lanes have read the operands. The lanes that wait still show their own to the others.
  exchange(kAll, address, 0);
  std::copy_n(sums, 4, c);
}

void require_alignment(const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0)
    throw Error("emulation of CUDA: an address is not aligned to " + std::to_string(bytes) + " bytes");
}

void load_matrices(std::uint32_t (&words)[4], const std::uint32_t* row, bool transposed) {
  constexpr unsigned kAll = 0xFFFFFFFF;
  require_alignment(row);
  const auto address = reinterpret_cast<std::uintptr_t>(row);
  exchange(kAll, address, 0);
  const auto element = [](int matrix, int of_row, int column) {
    const auto* const from = reinterpret_cast<const std::uint32_t*>(running->value_of(8 * matrix + of_row));
    return from[column / 2] >> 16 * (column % 2) & 0xFFFF;
  };
  const int g = lane() / 4, t = lane() % 4;
  std::uint32_t loaded[4];
  for (int m = 0; m < 4; ++m)
    loaded[m] = transposed ? element(m, 2 * t, g) | element(m, 2 * t + 1, g) << 16
                           : element(m, g, 2 * t) | element(m, g, 2 * t + 1) << 16;
  exchange(kAll, address, 0);  // waits until all lanes have read the addresses
  std::copy_n(loaded, 4, words);
}

void copy_later(void* to, const void* from) {
  require_alignment(to);
  require_alignment(from);
  running->current().late_copies.emplace_back(to, from);
}

void wait_for_copies() {
  constexpr std::size_t kBytes = 16;
  for (const auto& [to, from] : running->current().late_copies)
    if (from)
      std::memcpy(to, from, kBytes);
    else
      std::memset(to, 0, kBytes);
  running->current().late_copies.clear();
}

}  // namespace heed::emulation
