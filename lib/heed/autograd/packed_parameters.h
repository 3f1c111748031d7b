#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "heed/tensor/aligned_vector.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// Parameters in the order in which inference reads them, packed when first asked for and kept. For parameters that do
/// not change any more; shared by all threads that decode with them.
template <class T>
class PackedParameters {
 public:
  /// `size` elements that pack(memory) wrote for this view of parameters, now or before. They stay where they are.
  template <class Pack>
  const T* get(Tensor<T> view, std::int64_t size, Pack pack) {
    const std::lock_guard lock(mutex_);
    AlignedVector<T>& packed = packed_[{view.data(), view.size()}];
    if (packed.empty()) {
      packed.resize(static_cast<std::size_t>(size));
      pack(packed.data());
    }
    return packed.data();
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<const T*, std::int64_t>, AlignedVector<T>> packed_;
};

}  // namespace heed
