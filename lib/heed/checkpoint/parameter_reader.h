#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/autograd/parameters.h"
#include "heed/base/error.h"
#include "heed/checkpoint/checkpoint_file.h"
#include "heed/checkpoint/h5.h"
#include "heed/checkpoint/integrity.h"

namespace heed {

bool all_finite(std::span<const float> data);

/// Reads the parameters of an open checkpoint when and where they are wanted, on any thread. Later changes of the
/// file's name do not matter.
class ParameterReader {
 public:
  /// `datasets`: of a group, one for each parameter of the layout, of its shape. The layout must outlive this.
  ParameterReader(OpenCheckpoint checkpoint, std::string group, std::vector<h5::Dataset> datasets,
                  const ParameterLayout& layout);

  /// Elements first, first + 1, ... of the flat array; gaps between parameters are left as they are. Throws Error: the
  /// file cannot be read, or is damaged, once a parameter's checksum tells; or that names the parameter: its numbers
  /// are not finite, where no checksum tells that they are as they were saved.
  void read(std::int64_t first, std::span<float> out) const;
  /// Checks what has not been read. To be called before anything read is relied on.
  void finish() const;

 private:
  /// What is known of a parameter's bytes that have a checksum of their own.
  struct PendingChecksum {
    std::uint32_t crc;
    RangeChecksum sum;
  };

  void read_by_library(std::size_t parameter, std::int64_t first, std::span<float> out) const;
  bool read(std::size_t parameter, std::int64_t first, std::span<float> out) const;
  bool check(std::size_t parameter, std::int64_t offset, std::span<const char> bytes) const;
  void check_rest(std::size_t parameter) const;

  Error error(std::size_t parameter, const std::string& what) const;

  OpenCheckpoint checkpoint_;
  std::string group_;
  std::vector<h5::Dataset> datasets_;
  const ParameterLayout& layout_;
  std::vector<std::int64_t> offsets_;  // in the file, per parameter; negative where only the library can read it
  mutable std::mutex check_mutex_;     // of what follows
  mutable std::vector<std::optional<PendingChecksum>> unchecked_;  // per parameter; none where it is checked
  mutable std::mutex mutex_;  // of the library, which has no threads, and of what follows
  mutable std::size_t held_ = SIZE_MAX;
  mutable std::vector<float> values_;  // of the parameter held_
};

}  // namespace heed
