#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/base/error.h"

namespace heed {

// The checksums of a checkpoint file: how damage to a file is found, and why reading a model does not need to read the
// whole file.
//
// A checkpoint is an HDF5 file. heed appends a few lines of text behind the HDF5 data, where HDF5 does not look. The
// lines divide the file into two kinds of bytes:
//
//   data range  the numbers of one large array, 16 KiB or more. Each data range of a weight has its own CRC-32, which
//               is checked when the weight is read. The data ranges of arrays that only training needs, such as
//               optimiser moments, have no CRC-32: a program that translates never reads these bytes.
//   outline     all other bytes: HDF5's structures, small arrays, texts, and the lines about the data ranges. One
//               CRC-32 covers the whole outline, and is checked when a file is opened for translation.
//
// A last CRC-32 covers the whole file, and is checked when training is resumed. An example of the last bytes of a file,
// with a weight of 32768 bytes at offset 5000 and an optimiser moment of 32768 bytes at offset 40000:
//
//   5000 37768 1c2d3e4f                  data range of the weight: begin, end, CRC-32
//   40000 72768                          data range of the moment: begin, end
//   heed-crc32-outline=01234567 00000020 the CRC-32 of the outline, and the length of the lines above (0x20 = 32 bytes)
//   heed-crc32=89abcdef                  the CRC-32 of all bytes above

/// Bytes begin ... end - 1 of a file.
struct ByteRange {
  std::int64_t begin, end;
};

/// The CRC-32 of a sequence of bytes, and the number of bytes in the sequence.
struct Checksum {
  std::uint32_t crc = 0;
  std::int64_t size = 0;

  /// Computes the checksum of these bytes.
  static Checksum of(std::span<const char> bytes);
  /// Appends the sequence of bytes of `other` to the sequence of this checksum: the result is the checksum of both
  /// sequences, one after the other. Computes with the two CRCs only, without reading the bytes again.
  Checksum& operator+=(const Checksum& other);
};

/// Computes the CRC-32 of a byte range of a file from the checksums of parts of the range. The parts may come in any
/// order, and may come twice or overlap.
class RangeChecksum {
 public:
  explicit RangeChecksum(ByteRange range) : range_(range) {}

  /// Adds the checksum of a part of the range: the bytes that begin at offset `begin` in the file. Earlier parts that
  /// lie within the new part are replaced. If the new part overlaps an earlier part in any other way, the new part is
  /// ignored.
  void add(std::int64_t begin, const Checksum& part);
  /// Tells whether the parts added so far cover the whole range.
  bool whole() const { return parts_.size() == 1 && parts_.begin()->second.size == range_.end - range_.begin; }
  /// Returns the CRC-32 of the whole range; requires that whole() is true.
  std::uint32_t crc() const { return parts_.begin()->second.crc; }
  /// Returns the ranges of bytes that no part covers yet, in ascending order.
  std::vector<ByteRange> missing() const;

 private:
  ByteRange range_;
  // The checksums of the parts added so far, by the offset in the file at which the part begins. Parts that touch each
  // other have been joined.
  std::map<std::int64_t, Checksum> parts_;
};

/// A data range: the bytes of a checkpoint file that hold the elements of one large array. `crc` is the CRC-32 of these
/// bytes if the array is a weight; arrays of the optimiser have no CRC-32.
struct DataRange {
  ByteRange bytes;
  std::optional<std::uint32_t> crc;
};

/// Appends the checksum lines to a complete HDF5 file (the comment at the top of this file has an example):
/// - for each range of `weights` and `training`, in ascending order, a line "BEGIN END", in decimal; the line of a
///   range of `weights` goes on with the CRC-32 of the range's bytes, in hexadecimal: "BEGIN END XXXXXXXX";
/// - "heed-crc32-outline=XXXXXXXX LLLLLLLL", in hexadecimal: the CRC-32 of all bytes outside of these ranges, and the
///   total length of the "BEGIN END" lines in bytes;
/// - "heed-crc32=XXXXXXXX", in hexadecimal: the CRC-32 of all bytes of the file before this line.
/// Throws Error if writing fails; the message names the file `name`.
void append_checksum(const std::string& path, const std::string& name, std::span<const ByteRange> weights,
                     std::span<const ByteRange> training);

/// Which bytes of a checkpoint are checked when the file is opened: `all` bytes, or only the `outline`, the bytes apart
/// from large arrays. With `outline`, ParameterReader checks the large weights as they are read, so that each byte of
/// the file is read once.
enum class ChecksumScope { all, outline };

/// A file that is open for reading bytes at any offset, by any thread.
class OpenFile {
 public:
  /// Opens a file. Throws Error if the file cannot be opened.
  explicit OpenFile(const std::string& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// Returns the size of the file in bytes.
  std::int64_t size() const;
  /// Fills `out` with the bytes from `offset` on. Several threads may call read() at once. Throws Error if the bytes
  /// cannot be read.
  void read(std::int64_t offset, std::span<char> out) const;
  /// Returns an Error, for the caller to throw, which says that a checksum of the file does not match.
  Error damaged() const;

 private:
  std::string path_;
  int descriptor_;
};

/// An open checkpoint file whose checksum has been checked: the checksum of all bytes, or of the outline (all bytes
/// apart from large arrays). A file without checksum lines, such as one that another program wrote, is accepted
/// unchecked.
class CheckedFile : public OpenFile {
 public:
  /// Opens a file and checks the checksums that `scope` selects. Throws Error if the file cannot be read, or is
  /// damaged.
  CheckedFile(const std::string& path, ChecksumScope scope);

  /// Returns the data ranges (bytes in the file) of the large weights that have not been checked yet, in ascending
  /// order: the code that reads a weight must check the weight's CRC-32. Empty if the whole file has been checked, or
  /// has no checksums.
  const std::vector<DataRange>& unchecked() const { return unchecked_; }

 private:
  /// Checks the checksum of the outline (all bytes apart from large arrays), and lists in unchecked_ the large arrays,
  /// whose own checksums are still to be checked. `size` is the size of the file in bytes without its last line, the
  /// checksum of the whole file. Returns false if the file has no checksum of the outline. Throws Error if the file is
  /// damaged.
  bool check_outline(std::int64_t size);

  std::vector<DataRange> unchecked_;
};

}  // namespace heed
