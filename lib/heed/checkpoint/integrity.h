#pragma once

#include <functional>
#include <string>

namespace heed {

/// Appends "heed-crc32=XXXXXXXX\n", the CRC-32 of all bytes before it, behind the end that HDF5 knows of: readers of
/// HDF5 do not see it.
void append_checksum(const std::string& path);

/// Whether a file ends with such a line. Throws Error where it does and its bytes do not agree.
bool verify_checksum(const std::string& path);

/// Runs `read` in a child process first: HDF5's library crashes on some damaged files. Throws Error where the child
/// does not end in the usual way; an exception in it is no matter here, it will come again in the parent.
void try_in_child(const std::string& path, const std::function<void()>& read);

}  // namespace heed
