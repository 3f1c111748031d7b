#include "heed/dist/nccl.h"

#include <dlfcn.h>

#include <exception>
#include <optional>

#include "heed/base/error.h"

namespace heed {
namespace {

constexpr const char* kFile = "libnccl.so.2";
// The numbers of ncclFloat32 and ncclSum.
constexpr int kFloat32 = 7, kSum = 0;

/// Looks up a function of a library that is loaded. Returns whether there is one.
template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

struct Loaded {
  std::optional<NcclLibrary> library;
  std::string why_not;
};

Loaded load() {
  const std::string advice =
      " (install NVIDIA's NCCL, such as the package libnccl2, or name its folder in LD_LIBRARY_PATH)";
  void* const file = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (!file) {
    const char* const reason = ::dlerror();
    return {{}, "NCCL cannot be loaded: " + std::string(reason ? reason : kFile) + advice};
  }
  NcclLibrary out;
  if (find(file, "ncclGetVersion", out.version) && find(file, "ncclGetUniqueId", out.make_id) &&
      find(file, "ncclCommInitRank", out.join) && find(file, "ncclAllReduce", out.add_up) &&
      find(file, "ncclCommDestroy", out.leave) && find(file, "ncclCommAbort", out.abandon) &&
      find(file, "ncclGetErrorString", out.error_text))
    return {out, ""};
  return {{}, std::string(kFile) + " lacks functions of NCCL" + advice};
}

}  // namespace

const NcclLibrary* load_nccl(std::string& why_not) {
  static const Loaded loaded = load();
  why_not = loaded.why_not;
  return loaded.library ? &*loaded.library : nullptr;
}

NcclGroup::NcclGroup(const NcclLibrary& library, Communicator& ranks) : library_(library) {
  NcclLibrary::Id id{};
  run_on_first(ranks, [&] { check(library_.make_id(&id), "cannot start"); });
  ranks.broadcast(std::as_writable_bytes(std::span(id.bytes)));
  run_together(ranks, [&] { check(library_.join(&group_, ranks.size(), id, ranks.rank()), "cannot join the ranks"); });
}

NcclGroup::~NcclGroup() {
  // After an error on one rank, the others may never come to leave the group.
  (std::uncaught_exceptions() > 0 ? library_.abandon : library_.leave)(group_);
}

void NcclGroup::add_up(std::span<float> numbers, void* stream) {
  check(library_.add_up(numbers.data(), numbers.data(), numbers.size(), kFloat32, kSum, group_, stream),
        "cannot add the gradients up");
}

std::string NcclGroup::name() const {
  int version = 0;
  check(library_.version(&version), "has no version");
  return "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

void NcclGroup::check(int result, const char* what) const {
  if (result != 0) throw Error("NCCL " + std::string(what) + ": " + library_.error_text(result));
}

}  // namespace heed
