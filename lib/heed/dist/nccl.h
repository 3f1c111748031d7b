#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "heed/dist/communicator.h"

namespace heed {

/// The functions of NVIDIA's library NCCL that heed calls, declared here because heed is built without NCCL's header.
/// A result of 0 is success; a stream is one of CUDA.
struct NcclLibrary {
  /// The identifier of a group (ncclUniqueId): rank 0 creates it, and every rank joins the group with it.
  struct Id {
    char bytes[128];
  };

  int (*version)(int* version) = nullptr;
  int (*make_id)(Id* id) = nullptr;
  int (*join)(void** group, int size, Id id, int rank) = nullptr;
  int (*add_up)(const void* from, void* to, std::size_t count, int type, int operation, void* group,
                void* stream) = nullptr;
  int (*leave)(void* group) = nullptr;
  int (*abandon)(void* group) = nullptr;
  const char* (*error_text)(int result) = nullptr;
};

/// Loads NCCL, once in a process. Returns null where it cannot be loaded, and says in `why_not` what to do.
const NcclLibrary* load_nccl(std::string& why_not);

/// The GPUs of all ranks, one for each rank, between which NCCL moves numbers.
class NcclGroup {
 public:
  /// Collective. The GPU of this rank must be the current one of the calling thread, and no other rank's. Throws Error
  /// where NCCL refuses.
  NcclGroup(const NcclLibrary& library, Communicator& ranks);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// Replaces each number, in the memory of the GPU, by the sum of the numbers at its place on all ranks: puts this
  /// into the stream and does not wait. Collective; all ranks must have as many numbers.
  void add_up(std::span<float> numbers, void* stream);
  /// Returns the name and the version of the library, such as "NCCL 2.28.9".
  std::string name() const;

 private:
  void check(int result, const char* what) const;

  const NcclLibrary& library_;
  void* group_ = nullptr;
};

}  // namespace heed
