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

/// A stream buffer that reads from or writes to a file descriptor and never loses an error: a failed read or write
/// throws Error with the file's name and the reason, and a write to a pipe without a reader throws ClosedPipe. For an
/// input, in_avail() tells whether a read would block, since showmanyc() asks the system with poll().
class FdStreamBuf : public std::streambuf {
 public:
  /// Makes a buffer for the file descriptor `fd`; messages call the file `name`. An `owned` descriptor is closed by the
  /// destructor.
  FdStreamBuf(int fd, std::string name, bool owned);
  ~FdStreamBuf() override;
  FdStreamBuf(const FdStreamBuf&) = delete;
  FdStreamBuf& operator=(const FdStreamBuf&) = delete;

  int fd() const { return fd_; }
  /// Returns the number of bytes in the buffer: bytes that were read from the file descriptor and that the stream's
  /// user has not read yet.
  std::streamsize unread() const { return egptr() - gptr(); }
  /// Sets a function that is called before each write to the file descriptor, with the bytes that will be written.
  void watch(std::function<void(std::string_view)> watcher) { watcher_ = std::move(watcher); }
  /// Closes the file descriptor now, if this object owns the descriptor. Throws Error if the system reports that an
  /// earlier write has failed.
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

/// Opens /dev/null in place of each standard stream (stdin, stdout, stderr) that the parent process has closed. Tools
/// call this function before they open any file, so that no file gets the descriptor 0, 1 or 2. A tool that reads from
/// a stdin or writes to a stdout that was closed then gets an error; messages to a stderr that was closed are lost.
void open_closed_standard_streams();

/// Opens a file, or stdin ("-" or ""), for reading. Files whose name ends in .gz are decompressed; names of other
/// compressed files (.xz, .bz2, .zst) are errors. Throws Error, with the file's name, when the file cannot be opened;
/// reads from the stream throw Error too.
std::unique_ptr<std::istream> open_input(const std::string& path);

/// Returns the ending of a file name that says how the file is compressed: .gz, .xz, .bz2 or .zst. Returns "" for other
/// names.
std::string_view compressed_ending(const std::string& path);

/// How far a regular file has been read: the number of bytes that were read, and the size of the file in bytes.
struct InputPlace {
  std::int64_t read = 0, size = 0;
};
/// Returns how many bytes of its file a stream made by open_input() has read; bytes of a .gz file are counted before
/// decompression. Returns nothing when the input is not a regular file, or when open_input() did not make the stream.
std::optional<InputPlace> input_place(const std::istream& in);
/// Returns whether a stream made by open_input() reads from a terminal at which a person types.
bool is_typed(const std::istream& in);

/// Throws Error, with advice for the user, when `bytes`, the first bytes of an input, look like UTF-16 or UTF-32 text
/// or like compressed data.
void check_text_start(std::string_view bytes, const Position& where);

/// Opens a file for writing behind its end, and creates it if it does not exist. Throws Error, with the file's name,
/// when the file cannot be opened; writes to the stream throw Error too.
std::unique_ptr<std::ostream> open_for_appending(const std::string& path);

/// Returns the name of an input for messages: "standard input" for the paths "-" and "", other paths unchanged.
std::string input_name(const std::string& path);

/// Returns whether a path leads to a folder, a device, a pipe or a descriptor of this process (/dev/stdout): an output
/// to it replaces no file. Throws Error when there are too many links.
bool is_special(const std::string& path);

/// Follows the symbolic links in `path` and returns the path of the file that an output to `path` replaces or creates.
/// Throws Error when `path` is a folder, a device, a pipe or a file descriptor (/dev/stdout).
std::string target_of_output(const std::string& path);

/// Throws Error when no file can appear at `path`: when target_of_output() does, when the folder of the file is missing
/// or cannot be written to, and when a write-protected file is at `path`. Programs call this before they begin hours of
/// work.
void check_writable(const std::string& path);

/// Tells whether two paths lead to the same file, also through symbolic links. The file need not exist. Throws Error
/// when there are too many links.
bool is_same_path(const std::string& a, const std::string& b);

/// A file, and what names it: an option, such as "--model", or words such as "the input".
struct NamedFile {
  std::string name, path;
};

/// Returns the input of a tool, which is standard input ("-") if its path is empty.
NamedFile tool_input(const std::string& path);

/// Throws UsageError when several of a program's inputs have the path "-", which is standard input.
void check_standard_input(const std::vector<NamedFile>& inputs);

/// Returns the folder part of a path, or "." for a path that is only a name.
std::string folder_of(const std::string& path);
/// Tells whether the name of a file has this ending, such as ".png". Capital and small letters are the same.
bool has_ending(std::string_view path, std::string_view ending);

/// Returns the path "FOLDER/.NAME", with which the paths of all temporary files for the output file `target` =
/// "FOLDER/NAME" begin. Temporary files are in the folder of `target`.
std::string temporary_stem(const std::string& target);
/// Returns the path of this process's temporary file for the output file `target`: "FOLDER/.NAME.PID.tmp".
std::string temporary_name(const std::string& target);

/// Replaces a file in one step, so that no other process ever sees an unfinished file. The caller writes the file
/// temporary(); commit() then flushes that file to the disk, renames it to `path` and flushes the folder. Without
/// commit(), the destructor removes the temporary file and `path` stays unchanged. If `path` is a symbolic link, the
/// link stays, and the file that the link leads to is replaced or created; temporary() is then in the folder of that
/// file. If there is a file to be replaced, the constructor creates temporary() with the permissions of that file, so
/// that others cannot read a private file, also while it is written.
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

/// The output of a tool: stdout ("-" or ""), or a file that appears only when it is complete, at commit(). A file whose
/// name ends in .gz is compressed; names of other compressed files are errors. Devices and pipes are written directly.
/// Every write is checked: a full disk throws Error and never leaves a shortened file.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Returns the stream to write the output to. A failed write throws Error, since the stream throws when its badbit is
  /// set.
  std::ostream& stream() { return *stream_; }
  /// Sets a function that is called before each write to the output, with the bytes that will be written.
  void watch(std::function<void(std::string_view)> watcher) { buffer_->watch(std::move(watcher)); }
  /// Completes the output: flushes and closes the file and renames it to its final path, where no file has appeared
  /// before. Call this function once, after the last write.
  void commit();

 private:
  std::unique_ptr<AtomicPath> atomic_;
  std::unique_ptr<FdStreamBuf> buffer_;
  std::unique_ptr<std::streambuf> gzip_;
  std::unique_ptr<std::ostream> stream_;
};

}  // namespace heed
