#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "heed/autograd/parameters.h"
#include "heed/tensor/arena.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// Parameters in the order in which inference reads them, packed when first asked for and kept. For parameters that do
/// not change any more; shared by all threads that decode with them.
template <class T>
class PackedParameters {
 public:
  /// Takes the memory of all parameters of `layout` at once, which is less work for the system than piece by piece.
  explicit PackedParameters(const ParameterLayout& layout) {
    const Arena::Mark empty = arena_.mark();
    arena_.tensor<T>({layout.storage_size()});
    arena_.release(empty);
  }

  /// `size` elements that pack(memory) wrote for this view of parameters, now or before. They stay where they are.
  template <class Pack>
  const T* get(Tensor<T> view, std::int64_t size, Pack pack) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = packed_.try_emplace({view.data(), view.size()});
    if (is_new) {
      entry->second = arena_.tensor<T>({size}).data();
      pack(entry->second);
    }
    return entry->second;
  }

 private:
  std::mutex mutex_;
  Arena arena_;
  std::map<std::pair<const T*, std::int64_t>, T*> packed_;
};

}  // namespace heed
