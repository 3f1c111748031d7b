#include "heed/dist/communicator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "heed/base/error.h"
#include "heed/base/streams.h"

namespace heed {
namespace {

class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    if (!sends.empty() || !receives.empty()) throw Error("internal: a message of a process that is alone");
  }
  void all_gather(std::span<std::byte>, std::span<const Slice>) override {}
  void broadcast(std::span<std::byte>) override {}
  std::int64_t largest(std::int64_t number) override { return number; }
};

}  // namespace

std::vector<std::string> Communicator::gather(const std::string& text) {
  std::vector<Slice> parts;
  std::int64_t end = 0;
  for (const std::int64_t length : values_of_ranks(*this, static_cast<std::int64_t>(text.size()))) {
    parts.push_back({end, end + length});
    end += length;
  }
  std::string all(static_cast<std::size_t>(end), '\0');
  std::copy(text.begin(), text.end(), all.begin() + parts[static_cast<std::size_t>(rank())].begin);
  all_gather_elements(*this, std::span(all), parts);
  std::vector<std::string> out;
  for (const Slice& part : parts)
    out.push_back(all.substr(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.size())));
  return out;
}

void Communicator::broadcast_text(std::string& text) {
  std::int64_t size = std::ssize(text);
  broadcast(std::as_writable_bytes(std::span(&size, 1)));
  text.resize(static_cast<std::size_t>(size));
  broadcast(std::as_writable_bytes(std::span(text)));
}

void add_up(Communicator& ranks, std::span<std::int64_t> numbers) {
  const auto count = std::ssize(numbers);
  std::vector<std::int64_t> all(numbers.size() * static_cast<std::size_t>(ranks.size()));
  std::ranges::copy(numbers, all.begin() + ranks.rank() * count);
  std::vector<Slice> parts;
  for (std::int64_t r = 0; r < ranks.size(); ++r) parts.push_back({r * count, (r + 1) * count});
  all_gather_elements(ranks, std::span(all), parts);
  std::ranges::fill(numbers, 0);
  for (std::size_t i = 0; i < all.size(); ++i) numbers[i % numbers.size()] += all[i];
}

void add_part(std::string& text, std::string_view part) {
  const std::uint64_t size = part.size();
  text.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
}

std::string_view take_part(std::string_view& text) {
  std::uint64_t size = 0;
  std::memcpy(&size, text.data(), sizeof size);
  const std::string_view part = text.substr(sizeof size, size);
  text.remove_prefix(sizeof size + part.size());
  return part;
}

Communicator& no_other_ranks() {
  static SelfCommunicator self;
  return self;
}

void run_together(Communicator& ranks, const std::function<void()>& work) {
  if (ranks.size() == 1) return work();
  // The first letter of what a rank reports is the kind of its error.
  constexpr char kNone = '-', kError = 'e', kUsage = 'u';
  std::string report(1, kNone);
  try {
    work();
  } catch (const UsageError& error) {
    report = kUsage + std::string(error.what());
  } catch (const std::bad_alloc&) {
    report = kError + std::string("out of memory");
  } catch (const std::exception& error) {
    report = kError + std::string(error.what());
  }
  const std::vector<std::string> reports = ranks.gather(report);
  std::string messages;
  char kind = kNone;
  for (std::size_t r = 0; r < reports.size(); ++r) {
    if (reports[r][0] == kNone || std::find(reports.begin(), reports.begin() + static_cast<std::ptrdiff_t>(r),
                                            reports[r]) != reports.begin() + static_cast<std::ptrdiff_t>(r))
      continue;
    if (kind == kNone) kind = reports[r][0];
    messages +=
        (messages.empty() ? "" : "\n") + (r == 0 ? "" : "rank " + std::to_string(r) + ": ") + reports[r].substr(1);
  }
  if (kind == kNone) return;
  if (kind == kUsage) fail_together(ranks, UsageError(messages));
  fail_together(ranks, Error(messages));
}

void run_on_first(Communicator& ranks, const std::function<void()>& work) {
  std::exception_ptr error;
  if (ranks.rank() == 0) try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
  const bool failed = ranks.any(error != nullptr);
  if (failed) ranks.end_together();
  if (error) std::rethrow_exception(error);
  if (failed) throw OtherRankFailed();
}

namespace {

/// Returns the number in the first of these environment variables that is set, or `otherwise`.
int number_of(std::initializer_list<const char*> variables, int otherwise) {
  for (const char* name : variables)
    if (const char* const number = std::getenv(name)) return std::atoi(number);
  return otherwise;
}

}  // namespace

// Open MPI's mpirun; MPICH's and Intel MPI's mpirun, and srun with PMI-2; srun with PMIx.
int launched_processes() {
  const int step = std::getenv("PMIX_RANK") ? number_of({"SLURM_STEP_NUM_TASKS"}, 1) : 1;
  return std::max(1, number_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, step));
}

int launched_rank() {
  return launched_processes() > 1 ? number_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, 0) : 0;
}

namespace {

/// Returns the path of the module mpi.so, which is installed in a folder beside that of the programs. Another program
/// that uses the library finds it where heed is installed.
std::string module_path() {
  char program[PATH_MAX] = "";
  if (::readlink("/proc/self/exe", program, sizeof program - 1) < 0) return HEED_MPI_MODULE;
  return folder_of(program) + "/" HEED_MPI_MODULE;
}

}  // namespace

std::unique_ptr<Communicator> make_communicator() {
  const int processes = launched_processes();
  if (processes == 1) return nullptr;
  const std::string started = "started " + std::to_string(processes) + " times by a launcher, but ";
  if (!HEED_HAS_MPI)
    throw UsageError(started +
                     "this heed was built without MPI (install an MPI library, such as libopenmpi-dev, and build again "
                     "with -DHEED_MPI=ON)");
  // The modules of Open MPI look up the functions of its main library among all global functions.
  void* module = ::dlopen(module_path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!module) module = ::dlopen(HEED_INSTALLED_MPI_MODULE, RTLD_NOW | RTLD_GLOBAL);
  void* const make = module ? ::dlsym(module, "heed_make_mpi_communicator") : nullptr;
  if (!make) {
    const char* const reason = ::dlerror();
    throw UsageError(started + "MPI cannot be loaded: " + (reason ? reason : module_path().c_str()) +
                     " (install heed with cmake --install, and the MPI library that it was built with)");
  }
  std::unique_ptr<Communicator> ranks(reinterpret_cast<Communicator* (*)()>(make)());
  if (ranks->size() != processes)
    throw Error("the launcher has started " + std::to_string(processes) + " processes, but MPI knows " +
                std::to_string(ranks->size()) + " (use the launcher of the MPI library that heed was built with)");
  return ranks;
}

}  // namespace heed
