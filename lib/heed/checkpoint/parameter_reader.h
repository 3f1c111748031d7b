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

// The problem. To translate, a program needs each weight only in packed form, for example as int8. A model of 800 MB
// should start fast and use little memory: no byte of the file should be read twice, and the float32 weights should
// never be in memory all at once. But a damaged file must be found, and a checksum covers a whole weight.
//
// The idea. ParameterReader reads any part of the parameters directly from the file, on any thread, when
// PackedParameters (autograd/packed_parameters.h) asks for the part in order to pack it. The reader computes the CRC-32
// of each part that it reads, and combines the CRCs of the parts. When the parts cover a weight, the reader compares
// the combined CRC with the weight's CRC in the file. finish() reads the parts that nobody asked for, so that no weight
// stays unchecked.
//
// An example: a weight of 1024 x 8 float32 numbers is elements 64 ... 8255 of the flat array, and bytes 5000 ... 37767
// of the file. The file says that the CRC-32 of these bytes is 1c2d3e4f (checkpoint/integrity.h explains such lines).
//   read(4160, 4096 numbers)   thread 1 reads bytes 21384 ... 37767: the second half. The CRC of this part is kept.
//   read(64, 2048 numbers)     thread 2 reads bytes 5000 ... 13191: the first quarter. The CRC of this part is kept.
//   finish()                   reads bytes 13192 ... 21383: the second quarter, which was missing. The parts now
//                              cover the weight: the combined CRC must be 1c2d3e4f, else finish() throws Error.
//
// Small parameters belong to the file's outline, which was checked when the file was opened. A file that another
// program wrote may have compressed or bfloat16 datasets; those are read whole by the HDF5 library, one at a time.

/// Tells whether no number is infinite or NaN.
bool all_finite(std::span<const float> data);

/// Reads any part of the parameters of an open checkpoint, on any thread. The reader holds the file open: a newer
/// checkpoint that takes the file's name has no influence. The comment above has an example.
class ParameterReader {
 public:
  /// Prepares to read the datasets of a group of the checkpoint. `datasets` has one dataset for each parameter of the
  /// layout, with the parameter's shape. The layout must outlive the reader. Throws Error if the file's data ranges do
  /// not match the datasets.
  ParameterReader(OpenCheckpoint checkpoint, std::string group, std::vector<h5::Dataset> datasets,
                  const ParameterLayout& layout);

  /// Fills `out` with elements first, first + 1, ... of the flat array of all parameters. Elements of `out` in
  /// alignment gaps between parameters stay unchanged. Throws Error if the file cannot be read; if this part completes
  /// a weight and the weight's checksum does not match; or if numbers without a checksum of their own are not finite.
  void read(std::int64_t first, std::span<float> out) const;
  /// Reads and checks all parts of weights that read() has not read. The caller must call finish() before using the
  /// numbers that read() returned. Throws Error if a checksum does not match.
  void finish() const;

 private:
  /// The state of a weight whose checksum has not been compared yet.
  struct PendingChecksum {
    std::uint32_t crc;  // the weight's CRC-32, as the file states it
    RangeChecksum sum;  // the checksums of the parts read so far
  };

  /// Reads a part of a dataset whose elements are not consecutive float32 numbers in the file, by the HDF5 library.
  void read_by_library(std::size_t parameter, std::int64_t first, std::span<float> out) const;
  /// Reads a part of one parameter; `first` is relative to the parameter. Returns true if a checksum covers the part: a
  /// mismatch has been reported or will be, when the parameter is complete.
  bool read(std::size_t parameter, std::int64_t first, std::span<float> out) const;
  /// Adds the bytes of a part, at `offset` in the file, to the parameter's checksum. Throws Error if the parts now
  /// cover the parameter and the checksum does not match. Returns false if the parameter has no checksum of its own, or
  /// if the checksum was found to match before.
  bool check(std::size_t parameter, std::int64_t offset, std::span<const char> bytes) const;
  /// Reads and checks the parts of one parameter that have not been read.
  void check_rest(std::size_t parameter) const;

  /// Returns an Error that names the file and the parameter, for the caller to throw.
  Error error(std::size_t parameter, const std::string& what) const;

  OpenCheckpoint checkpoint_;
  std::string group_;
  std::vector<h5::Dataset> datasets_;
  const ParameterLayout& layout_;
  std::vector<std::int64_t> offsets_;  // each parameter's offset in the file; -1: only HDF5 can read the data
  mutable std::mutex check_mutex_;     // protects unchecked_
  mutable std::vector<std::optional<PendingChecksum>> unchecked_;  // for each parameter; absent if checked
  mutable std::mutex mutex_;  // protects held_, values_ and calls of the HDF5 library, which is not thread-safe
  mutable std::size_t held_ = SIZE_MAX;  // the parameter that read_by_library() read last
  mutable std::vector<float> values_;    // all numbers of the parameter held_
};

}  // namespace heed
