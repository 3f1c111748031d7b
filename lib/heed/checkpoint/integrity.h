#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/base/error.h"

namespace heed {

/// Bytes begin ... end - 1 of a file.
struct ByteRange {
  std::int64_t begin, end;
};

/// The CRC-32 of some bytes, and how many they are.
struct Checksum {
  std::uint32_t crc = 0;
  std::int64_t size = 0;

  static Checksum of(std::span<const char> bytes);
  /// Of these bytes and, behind them, the other's.
  Checksum& operator+=(const Checksum& other);
};

/// The CRC-32 of a range from those of its parts, which come in any order.
class RangeChecksum {
 public:
  explicit RangeChecksum(ByteRange range) : range_(range) {}

  /// Adds the bytes from `begin` on, which lie in the range. They take the place of parts within them; where they reach
  /// into another part, they are left out.
  void add(std::int64_t begin, const Checksum& part);
  bool whole() const { return parts_.size() == 1 && parts_.begin()->second.size == range_.end - range_.begin; }
  /// Of the whole range.
  std::uint32_t crc() const { return parts_.begin()->second.crc; }
  /// What is missing, ascending.
  std::vector<ByteRange> missing() const;

 private:
  ByteRange range_;
  std::map<std::int64_t, Checksum> parts_;  // by their beginning; no two touch
};

/// Bytes of which a checkpoint's outline does not tell: the numbers of a weight, with their CRC-32, or, without, of one
/// of training's arrays.
struct DataRange {
  ByteRange bytes;
  std::optional<std::uint32_t> crc;
};

/// Appends, behind the end that HDF5 knows of, where readers of HDF5 do not look, lines of text: for each range that
/// lies apart, in ascending order, "BEGIN END XXXXXXXX\n" with the CRC-32 of the numbers of a weight, "BEGIN END\n" for
/// one of training's arrays; "heed-crc32-outline=XXXXXXXX LLLLLLLL\n", the CRC-32 of all other bytes, those lines
/// included, and their length; then "heed-crc32=XXXXXXXX\n", the CRC-32 of all bytes before it. `name`: of the file in
/// messages about failed writes.
void append_checksum(const std::string& path, const std::string& name, std::span<const ByteRange> weights,
                     std::span<const ByteRange> training);

/// Which bytes of a checkpoint are checked when it is opened: all, or the outline. Of an outline's weights whoever
/// reads them checks the bytes on the way, so that a file is read once.
enum class ChecksumScope { all, outline };

/// A file open for reading.
class OpenFile {
 public:
  /// Throws Error where the file cannot be opened for reading.
  explicit OpenFile(const std::string& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::int64_t size() const;
  /// Fills `out` with the bytes from `offset` on. Throws Error where they cannot be read. For any thread.
  void read(std::int64_t offset, std::span<char> out) const;
  /// What is to be thrown where its checksums do not agree.
  Error damaged() const;

 private:
  std::string path_;
  int descriptor_;
};

/// A file whose bytes agree with their checksums, as far as they have some and are to be checked.
class CheckedFile : public OpenFile {
 public:
  /// Throws Error where the file cannot be read, or is damaged.
  CheckedFile(const std::string& path, ChecksumScope scope);

  /// The weights that are left to be checked, ascending.
  const std::vector<DataRange>& unchecked() const { return unchecked_; }

 private:
  bool check_outline(std::int64_t size);

  std::vector<DataRange> unchecked_;
};

}  // namespace heed
