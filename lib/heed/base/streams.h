#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/temporary_name.h"

namespace heed {

/// A stream buffer over a file descriptor, for reading or for writing, that never loses an error: a failed read or
/// write throws Error with `name` and the reason, a reader that went away throws ClosedPipe. As an input its
/// showmanyc() asks poll(), so `in_avail()` tells whether a read would block.
class FdStreamBuf : public std::streambuf {
 public:
  /// Closes `fd` at the end when `owned`.
  FdStreamBuf(int fd, std::string name, bool owned);
  ~FdStreamBuf() override;
  FdStreamBuf(const FdStreamBuf&) = delete;
  FdStreamBuf& operator=(const FdStreamBuf&) = delete;

  int fd() const { return fd_; }
  /// Bytes that were read from the descriptor and are still in the buffer.
  std::streamsize unread() const { return egptr() - gptr(); }
  /// Calls `watcher` with the bytes of each write, before the write.
  void watch(std::function<void(std::string_view)> watcher) { watcher_ = std::move(watcher); }
  /// Closes an owned descriptor now and reports what the close says.
  void close();

 protected:
  int_type underflow() override;
  std::streamsize showmanyc() override;
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  void write_all();

  int fd_;
  std::string name_;
  bool owned_;
  std::vector<char> buffer_;
  std::function<void(std::string_view)> watcher_;
};

/// For the process of a tool, before it opens any file: a standard stream that the parent process has closed becomes
/// one whose use is an error, so that no file takes its number. What is written to a closed stderr is lost.
void open_closed_standard_streams();

/// An input stream on stdin ("-" or "") or a file; names that end in .gz are decompressed, and other names of
/// compressed files (.xz, .bz2, .zst) are errors. Errors name the file; reads throw Error.
std::unique_ptr<std::istream> open_input(const std::string& path);

/// Bytes of a regular file.
struct InputPlace {
  std::int64_t read = 0, size = 0;
};
/// Returns how many bytes of its file a stream of open_input() has read, counted before decompression. Returns nothing
/// where the input is no regular file, and for other streams.
std::optional<InputPlace> input_place(const std::istream& in);
/// Whether a stream of open_input() reads what someone types at a terminal.
bool is_typed(const std::istream& in);

/// Throws Error, with what to do, where `bytes`, the first of an input, look like UTF-16 or UTF-32 text or like
/// compressed data that nothing has unpacked.
void check_text_start(std::string_view bytes, const Position& where);

/// "-" and "" as "standard input", other paths as they are: for messages.
std::string input_name(const std::string& path);

/// Returns the file that an output to `path` replaces or makes: symbolic links are resolved. Throws Error where `path`
/// is a folder, a device, a pipe or a descriptor (/dev/stdout).
std::string target_of_output(const std::string& path);

/// Returns the folder that a path's file is in: "." for a name alone.
std::string folder_of(const std::string& path);

/// Returns what the names of all temporary files for `target` begin with, in the same folder: "FOLDER/.NAME".
std::string temporary_stem(const std::string& target);
/// Returns the name of this process's temporary file for `target`: its stem, then ".PID.tmp".
std::string temporary_name(const std::string& target);

/// A path beside `path` that becomes `path` in one step: write to temporary(), then commit() flushes it to the disk,
/// renames it and flushes the folder. Without commit() the temporary is removed and `path` stays as it was. Where
/// `path` is a symbolic link the file that it leads to is replaced, or made, and the link stays; temporary() is beside
/// that file then.
class AtomicPath {
 public:
  explicit AtomicPath(std::string path);

  const std::string& temporary() const { return temporary_.path(); }
  const std::string& path() const { return path_; }
  void commit();

 private:
  std::string path_, target_;
  TemporaryName temporary_;
};

/// Where a tool's output goes: stdout ("-" or ""), or a file that appears whole at commit() (.gz is compressed;
/// other names of compressed files are errors).
/// Devices and pipes are written in place. Every write is checked: a full disk throws Error, never leaves a short file.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Throws on a failed write (badbit is an exception).
  std::ostream& stream() { return *stream_; }
  /// As FdStreamBuf::watch().
  void watch(std::function<void(std::string_view)> watcher) { buffer_->watch(std::move(watcher)); }
  /// Must be called once all is written; a file does not appear before.
  void commit();

 private:
  std::unique_ptr<AtomicPath> atomic_;
  std::unique_ptr<FdStreamBuf> buffer_;
  std::unique_ptr<std::streambuf> gzip_;
  std::unique_ptr<std::ostream> stream_;
};

}  // namespace heed
