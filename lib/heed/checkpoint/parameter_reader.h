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

/// Tells whether all numbers in `data` are finite, that is, neither infinite nor NaN.
bool all_finite(std::span<const float> data);

/// Reads any part of the parameters of an open checkpoint, on any thread. The reader keeps the file open: if training
/// writes a newer checkpoint under the same name, the reader continues to read the older one. The comment at the top of
/// this file has an example.
class ParameterReader {
 public:
  /// Prepares to read the datasets of the HDF5 group `group` of the checkpoint. `datasets` has one dataset for each
  /// parameter of the layout, with the parameter's shape. The layout must outlive the reader. Throws Error if the byte
  /// ranges for which the file states checksums do not match the datasets.
  ParameterReader(OpenCheckpoint checkpoint, std::string group, std::vector<h5::Dataset> datasets,
                  const ParameterLayout& layout);

  /// Fills `out` with the elements from index `first` on of the flat array, in which all parameters lie one after
  /// another. Elements of `out` in alignment gaps between parameters stay unchanged. Throws Error if the file cannot be
  /// read; if all parts of a weight have now been read and the weight's checksum does not match; or if numbers that no
  /// checksum of a single weight covers are not finite.
  void read(std::int64_t first, std::span<float> out) const;
  /// Reads and checks all parts of weights that read() has not read. The caller must call finish() before using the
  /// numbers that read() returned. Throws Error if the checksum of a weight does not match.
  void finish() const;

 private:
  /// The state of a weight whose checksum has not been compared yet.
  struct PendingChecksum {
    std::uint32_t crc;  // the CRC-32 that the file states for the weight
    RangeChecksum sum;  // the checksums of the parts of the weight that have been read
  };

  /// Reads a part of one parameter with the HDF5 library, because the file does not contain the elements as consecutive
  /// float32 numbers. `first` is the index of the part's first element in the parameter.
  void read_by_library(std::size_t parameter, std::int64_t first, std::span<float> out) const;
  /// Reads a part of one parameter; `first` is the index of the part's first element in the parameter. Returns true if
  /// a checksum of this parameter covers the part: a mismatch throws Error when the last part of the parameter is read.
  bool read(std::size_t parameter, std::int64_t first, std::span<float> out) const;
  /// Adds the bytes of a part of a parameter to the parameter's checksum; `offset` is the offset of the bytes in the
  /// file. Throws Error if all bytes of the parameter have now been added and the checksum does not match. Returns
  /// false if the parameter has no checksum of its own, or if the checksum was found to match before.
  bool check(std::size_t parameter, std::int64_t offset, std::span<const char> bytes) const;
  /// Reads the parts of one parameter that have not been read, and checks the checksum of the parameter.
  void check_rest(std::size_t parameter) const;

  /// Returns an Error that names the file and the parameter, for the caller to throw.
  Error error(std::size_t parameter, const std::string& what) const;

  OpenCheckpoint checkpoint_;
  std::string group_;
  std::vector<h5::Dataset> datasets_;
  const ParameterLayout& layout_;
  // For each parameter, the offset in the file, in bytes, of the first element; -1 if only the HDF5 library can read
  // the data, such as compressed data.
  std::vector<std::int64_t> offsets_;
  mutable std::mutex check_mutex_;  // protects unchecked_
  // For each parameter, the checksum that has not been compared yet; absent if the parameter has no checksum of its own
  // or has been checked.
  mutable std::vector<std::optional<PendingChecksum>> unchecked_;
  // Protects held_, values_ and all calls of the HDF5 library, which is not thread-safe.
  mutable std::mutex mutex_;
  mutable std::size_t held_ = SIZE_MAX;  // index of the parameter that read_by_library() read last
  mutable std::vector<float> values_;    // all elements of the parameter held_
};

}  // namespace heed
