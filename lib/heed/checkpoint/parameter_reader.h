#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "heed/autograd/parameters.h"
#include "heed/base/error.h"
#include "heed/checkpoint/h5.h"

namespace heed {

bool all_finite(std::span<const float> data);

/// Reads the parameters of an open checkpoint when and where they are wanted, on any thread. Later changes of the
/// file's name do not matter.
class ParameterReader {
 public:
  /// `datasets`: of a group, one for each parameter of the layout, of its shape. The layout must outlive this.
  ParameterReader(std::shared_ptr<const h5::File> file, std::string group, std::vector<h5::Dataset> datasets,
                  const ParameterLayout& layout);
  ~ParameterReader();
  ParameterReader(const ParameterReader&) = delete;
  ParameterReader& operator=(const ParameterReader&) = delete;

  /// Elements first, first + 1, ... of the flat array; gaps between parameters are left as they are. Throws Error that
  /// names the parameter: unreadable, or not finite.
  void read(std::int64_t first, std::span<float> out) const;

 private:
  void read(std::size_t parameter, std::int64_t first, std::span<float> out) const;
  void read_by_library(std::size_t parameter, std::int64_t first, std::span<float> out) const;

  Error error(std::size_t parameter, const std::string& what) const;

  std::shared_ptr<const h5::File> file_;
  std::string group_;
  std::vector<h5::Dataset> datasets_;
  const ParameterLayout& layout_;
  int descriptor_ = -1;
  std::vector<std::int64_t> offsets_;  // in the file, per parameter; negative where only the library can read it
  mutable std::mutex mutex_;           // of the library, which has no threads, and of what follows
  mutable std::size_t held_ = SIZE_MAX;
  mutable std::vector<float> values_;  // of the parameter held_
};

}  // namespace heed
