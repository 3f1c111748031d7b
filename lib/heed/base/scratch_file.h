#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace heed {

/// A file without a name for data that does not fit in memory. The system removes it when the process ends, however it
/// ends.
class ScratchFile {
 public:
  /// Creates the file in a folder. Throws Error if this fails.
  explicit ScratchFile(const std::string& folder);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  /// Writes bytes at the end of the file. Throws Error when the disk is full.
  void append(std::span<const char> bytes);
  /// Reads bytes from `offset` on. Throws Error where the file ends before.
  void read(std::int64_t offset, std::span<char> bytes) const;
  /// Returns the number of bytes in the file.
  std::int64_t size() const { return size_; }

 private:
  [[noreturn]] void fail(const std::string& what) const;

  std::string folder_;
  int file_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace heed
