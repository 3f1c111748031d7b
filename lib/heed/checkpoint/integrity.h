#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace heed {

/// Bytes begin ... end - 1 of a file.
struct ByteRange {
  std::int64_t begin, end;
};

/// Which bytes of a checkpoint are checked: all, or those that a model is read from.
enum class Checked { all, model };

/// Appends, behind the end that HDF5 knows of, where readers of HDF5 do not look, lines of text: the range of each of
/// `training`, "BEGIN END\n" (ascending; what no model is read from; without any, nothing), and
/// "heed-crc32-model=XXXXXXXX LLLLLLLL\n", the CRC-32 of all other bytes, those lines included, and their length; then
/// "heed-crc32=XXXXXXXX\n", the CRC-32 of all bytes before it.
void append_checksum(const std::string& path, std::span<const ByteRange> training);

/// Whether a file ends with such lines. Throws Error where it does and the bytes that are checked do not agree.
bool verify_checksum(const std::string& path, Checked checked);

/// Runs `read` in a child process first: HDF5's library crashes on some damaged files. Throws Error where the child
/// does not end in the usual way; an exception in it is no matter here, it will come again in the parent.
void try_in_child(const std::string& path, const std::function<void()>& read);

}  // namespace heed
