#include "heed/base/streams.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <filesystem>

#include "heed/base/error.h"
#include "heed/base/put_in_place.h"

namespace heed {
namespace io = boost::iostreams;
namespace {

constexpr std::size_t kBufferSize = 1 << 16;

bool is_gzip_name(const std::string& path) {
  return path.size() > 3 && path.ends_with(".gz");
}

/// A compression format that heed recognises but cannot read or write, such as .xz.
struct Compression {
  std::string_view name, ending, magic, command;
};
constexpr Compression kCompressions[] = {{"xz",
                                          ".xz",
                                          {"\xFD"
                                           "7zXZ\0",
                                           6},
                                          "xz"},
                                         {"bzip2", ".bz2", "BZh", "bzip2"},
                                         {"zstd", ".zst", "\x28\xB5\x2F\xFD", "zstd"}};

bool starts_with_magic(const Compression& compression, std::string_view bytes) {
  if (!bytes.starts_with(compression.magic)) return false;
  return compression.name != "bzip2" || bytes.substr(std::min<std::size_t>(4, bytes.size())).starts_with("1AY&SY");
}

const Compression* compression_of_name(const std::string& path) {
  for (const Compression& compression : kCompressions)
    if (path.ends_with(compression.ending)) return &compression;
  return nullptr;
}

std::string advice(const Compression& compression) {
  const std::string command(compression.command);
  return " (only gzip is unpacked here: " + command + " -dc FILE | ..., or unpack it with " + command + " -d)";
}

bool is_standard(const std::string& path) {
  return path.empty() || path == "-";
}

/// An input stream buffer that decompresses a gzip file. showmanyc() always says that bytes are ready, since a read
/// from a file on disk never waits for another program.
class GzipInput : public io::filtering_streambuf<io::input> {
 protected:
  std::streamsize showmanyc() override { return 1; }
};

/// An input stream that owns the stream buffers from which it reads.
class OwningIstream : public std::istream {
 public:
  OwningIstream(std::unique_ptr<FdStreamBuf> file, const std::string& path)
      : std::istream(nullptr), file_(std::move(file)) {
    if (is_gzip_name(path)) {
      gzip_.push(io::gzip_decompressor());
      gzip_.push(*file_);
      rdbuf(&gzip_);
    } else {
      rdbuf(file_.get());
    }
    exceptions(std::ios::badbit);
  }

  const FdStreamBuf& file() const { return *file_; }

 private:
  std::unique_ptr<FdStreamBuf> file_;
  GzipInput gzip_;
};

/// An output stream that owns its stream buffer.
class OwningOstream : public std::ostream {
 public:
  explicit OwningOstream(std::unique_ptr<FdStreamBuf> file) : std::ostream(file.get()), file_(std::move(file)) {
    exceptions(std::ios::badbit);
  }

 private:
  std::unique_ptr<FdStreamBuf> file_;
};

/// Returns the number of the open file descriptor that a path names, such as 1 for /dev/fd/1 or /proc/self/fd/1;
/// returns nothing for other paths.
std::optional<int> descriptor_named(std::string_view path) {
  for (const std::string& folder :
       {std::string("/dev/fd/"), std::string("/proc/self/fd/"), "/proc/" + std::to_string(::getpid()) + "/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const char* const end = path.data() + path.size();
    const auto result = std::from_chars(path.data() + folder.size(), end, number);
    if (result.ec == std::errc() && result.ptr == end) return number;
  }
  return std::nullopt;
}

/// Tells whether `path` is a file that its own user may not write.
bool is_write_protected(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IWUSR) == 0;
}

/// Creates the empty file `path` with the permissions of the file `like`, and with its group and its owner as far as
/// this process may give files away. Does nothing if there is no file `like`. If `path` cannot be created, the caller
/// gets the error when it opens `path`.
void create_like(const std::string& like, const std::string& path) {
  struct stat status {};
  if (::stat(like.c_str(), &status) != 0) return;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  // A user may give a file to another of the user's groups, but only root may give it to another user.
  [[maybe_unused]] const bool same_group = ::fchown(fd, -1U, status.st_gid) == 0;
  [[maybe_unused]] const bool same_owner = ::fchown(fd, status.st_uid, -1U) == 0;
  [[maybe_unused]] const bool same_mode = ::fchmod(fd, status.st_mode & 0777) == 0;
  ::close(fd);
}

/// Follows the symbolic links of `path` and returns the path that they lead to. The result is not a symbolic link, or
/// is a path such as /dev/fd/1 that names an open file descriptor. No file needs to exist at the result.
std::string without_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // the Linux kernel too follows at most 40 symbolic links in one path
  std::string out = path;
  for (int i = 0; i < kMostLinks; ++i) {
    if (descriptor_named(out)) return out;
    std::string target(PATH_MAX, '\0');
    const ssize_t size = ::readlink(out.c_str(), target.data(), target.size());
    if (size < 0) return out;
    target.resize(static_cast<std::size_t>(size));
    out = target.starts_with('/') ? target : folder_of(out) + "/" + target;
  }
  throw Error(Position{path}, "cannot be written: too many levels of symbolic links");
}

/// Tells, after a read or write of `fd` that has failed, whether to try again: a signal has interrupted it, or another
/// program that has the same pipe or terminal open has made it non-blocking. In the second case, waits until `fd` is
/// ready for `events` (see poll()).
bool should_try_again(int fd, short events) {
  if (errno == EINTR) return true;
  if (errno != EAGAIN) return false;
  pollfd ask{fd, events, 0};
  ::poll(&ask, 1, -1);
  return true;
}

/// Writes the contents of a file or a folder from the system's cache to the disk (fsync). Error messages call the file
/// `name`, or, for a folder, say that it is the folder of `name`. Some file systems cannot flush folders, and a user
/// may write to a folder that the user cannot read, so a folder that cannot be flushed is not an error.
void flush_to_disk(const std::string& path, const std::string& name, bool folder) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && folder && errno == EACCES) return;
  if (fd < 0)
    throw Error(Position{name}, std::string("cannot open ") + (folder ? "its folder" : "it") +
                                    " to flush it to the disk: " + errno_text());
  const int failed = ::fsync(fd);
  const std::string reason = errno_text();
  ::close(fd);
  if (failed && !folder) throw Error(Position{name}, "cannot flush it to the disk: " + reason);
}

}  // namespace

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool has_ending(std::string_view path, std::string_view ending) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return path.size() >= ending.size() &&
         std::equal(ending.begin(), ending.end(), path.end() - static_cast<std::ptrdiff_t>(ending.size()),
                    [&](char a, char b) { return small(a) == small(b); });
}

FdStreamBuf::FdStreamBuf(int fd, std::string name, bool owned)
    : fd_(fd), name_(std::move(name)), owned_(owned), buffer_(kBufferSize) {}

FdStreamBuf::~FdStreamBuf() {
  if (owned_ && fd_ >= 0) ::close(fd_);
}

void FdStreamBuf::close() {
  if (!owned_ || fd_ < 0) return;
  const int failed = ::close(fd_);
  fd_ = -1;
  if (failed) throw Error(Position{name_}, "cannot write: " + errno_text());
}

FdStreamBuf::int_type FdStreamBuf::underflow() {
  ssize_t got;
  do {
    got = ::read(fd_, buffer_.data(), buffer_.size());
  } while (got < 0 && should_try_again(fd_, POLLIN));
  if (got < 0) throw Error(Position{name_}, "cannot read: " + errno_text());
  if (got == 0) return traits_type::eof();
  setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
  return traits_type::to_int_type(*gptr());
}

std::streamsize FdStreamBuf::showmanyc() {
  pollfd ask{fd_, POLLIN, 0};
  if (::poll(&ask, 1, 0) <= 0) return 0;
  // poll() has said that the descriptor has bytes to read or is at the end of its input. In both cases one read does
  // not wait.
  return underflow() == traits_type::eof() ? -1 : egptr() - gptr();
}

void FdStreamBuf::write_all() {
  if (watcher_) watcher_({pbase(), static_cast<std::size_t>(pptr() - pbase())});
  const char* at = pbase();
  while (at < pptr()) {
    const ssize_t put = ::write(fd_, at, static_cast<std::size_t>(pptr() - at));
    if (put < 0) {
      if (should_try_again(fd_, POLLOUT)) continue;
      setp(buffer_.data(), buffer_.data() + buffer_.size());
      if (errno == EPIPE) throw ClosedPipe();
      throw Error(Position{name_}, "cannot write: " + errno_text());
    }
    at += put;
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

FdStreamBuf::int_type FdStreamBuf::overflow(int_type c) {
  write_all();
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

int FdStreamBuf::sync() {
  if (pbase()) write_all();
  return 0;
}

void open_closed_standard_streams() {
  constexpr int kOtherDirection[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The standard stream `fd` is closed, and the descriptors below it are open. open() returns the lowest free
    // descriptor, so /dev/null gets exactly the descriptor `fd`.
    if (::open("/dev/null", kOtherDirection[fd]) != fd)
      throw Error(Position{"/dev/null"}, "cannot open: " + errno_text());
  }
}

std::optional<InputPlace> input_place(const std::istream& in) {
  const auto* input = dynamic_cast<const OwningIstream*>(&in);
  if (!input) return std::nullopt;
  struct stat status {};
  if (::fstat(input->file().fd(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const off_t offset = ::lseek(input->file().fd(), 0, SEEK_CUR);
  if (offset < 0) return std::nullopt;
  return InputPlace{offset - input->file().unread(), status.st_size};
}

bool is_typed(const std::istream& in) {
  const auto* input = dynamic_cast<const OwningIstream*>(&in);
  return input && ::isatty(input->file().fd()) == 1;
}

void check_text_start(std::string_view bytes, const Position& where) {
  if (bytes.starts_with("\x1f\x8b"))
    throw Error(where, "looks like gzip data (name it FILE.gz, or pipe it through zcat)");
  for (const Compression& compression : kCompressions)
    if (starts_with_magic(compression, bytes))
      throw Error(where, "looks like " + std::string(compression.name) + " data" + advice(compression));
  if (!bytes.starts_with("\xFF\xFE") && !bytes.starts_with("\xFE\xFF")) return;
  const std::string name = bytes.starts_with(std::string_view("\xFF\xFE\0\0", 4)) ? "UTF-32" : "UTF-16";
  throw Error(where, "looks like " + name + " text (make it UTF-8: iconv -f " + name + " -t UTF-8 FILE | ...)");
}

std::string_view compressed_ending(const std::string& path) {
  if (is_gzip_name(path)) return ".gz";
  const Compression* compression = compression_of_name(path);
  return compression ? compression->ending : "";
}

std::string input_name(const std::string& path) {
  return is_standard(path) ? "standard input" : path;
}

std::unique_ptr<std::istream> open_input(const std::string& path) {
  if (is_standard(path))
    return std::make_unique<OwningIstream>(std::make_unique<FdStreamBuf>(STDIN_FILENO, input_name(path), false), "");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(Position{path}, "cannot open: " + errno_text());
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(fd);
    throw Error(Position{path}, "is a folder (name a file)");
  }
  auto file = std::make_unique<FdStreamBuf>(fd, path, true);
  if (const Compression* compression = compression_of_name(path))
    throw Error(Position{path}, "is " + std::string(compression->name) + " data by its name" + advice(*compression));
  constexpr int kFirstGzipByte = 0x1F;
  // The first byte of a pipe is not looked at here, because this would wait for the program that writes into the pipe.
  if (is_gzip_name(path) && S_ISREG(status.st_mode)) {
    const int first = file->sgetc();
    if (first != std::char_traits<char>::eof() && first != kFirstGzipByte)
      throw Error(Position{path},
                  "is not gzip data, although its name ends in .gz (take .gz off the name, or compress the file)");
  }
  return std::make_unique<OwningIstream>(std::move(file), path);
}

std::unique_ptr<std::ostream> open_for_appending(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) throw Error(Position{path}, "cannot open for writing: " + errno_text());
  return std::make_unique<OwningOstream>(std::make_unique<FdStreamBuf>(fd, path, true));
}

bool is_special(const std::string& path) {
  struct stat status {};
  return descriptor_named(without_links(path)) || (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode));
}

std::string target_of_output(const std::string& path) {
  std::string target = without_links(path);
  if (is_special(target)) throw Error(Position{path}, "is not a regular file (name a file that may be replaced)");
  return target;
}

void check_writable(const std::string& path) {
  const std::string target = target_of_output(path);
  // With the slash, a file in place of the folder is ENOTDIR and not a missing permission.
  if (::access((folder_of(target) + "/").c_str(), W_OK | X_OK) != 0 ||
      (is_write_protected(target) && ::access(target.c_str(), W_OK) != 0))
    throw Error(Position{path}, "cannot open for writing: " + errno_text());
}

bool is_same_path(const std::string& a, const std::string& b) {
  const auto resolved = [](const std::string& path) {
    std::error_code failed;
    const std::filesystem::path whole = std::filesystem::absolute(without_links(path), failed);
    const std::filesystem::path out = std::filesystem::weakly_canonical(whole, failed);
    return failed ? whole : out;
  };
  return resolved(a) == resolved(b);
}

NamedFile tool_input(const std::string& path) {
  return {"the input", path.empty() ? "-" : path};
}

void check_standard_input(const std::vector<NamedFile>& inputs) {
  const NamedFile* first = nullptr;
  for (const NamedFile& input : inputs) {
    if (input.path != "-") continue;
    if (first) throw UsageError(input.name + " - reads standard input, and so does " + first->name + " (give files)");
    first = &input;
  }
}

std::string temporary_stem(const std::string& target) {
  return folder_of(target) + "/." + target.substr(target.rfind('/') + 1);
}

std::string temporary_name(const std::string& target) {
  return temporary_stem(target) + "." + std::to_string(::getpid()) + ".tmp";
}

AtomicPath::AtomicPath(std::string path)
    : path_(std::move(path)), target_(target_of_output(path_)), temporary_(temporary_name(target_)) {
  create_like(target_, temporary_.path());
}

void put_in_place(const std::string& temporary, const std::string& target, const std::string& name) {
  flush_to_disk(temporary, name, false);
  if (std::rename(temporary.c_str(), target.c_str()) != 0)
    throw Error(Position{name}, "cannot put the finished file in place: " + errno_text());
  flush_to_disk(folder_of(target), name, true);
}

void AtomicPath::commit() {
  put_in_place(temporary(), target_, path_);
  temporary_.release();
}

OutputFile::OutputFile(const std::string& path) {
  if (const Compression* compression = compression_of_name(path))
    throw Error(Position{path}, "cannot be written as " + std::string(compression->name) +
                                    " data (name it .gz, or pipe it: ... | " + std::string(compression->command) +
                                    " > FILE)");
  if (is_standard(path)) {
    buffer_ = std::make_unique<FdStreamBuf>(STDOUT_FILENO, "standard output", false);
  } else if (const auto descriptor = descriptor_named(without_links(path))) {
    // The path names an open file descriptor, such as /dev/fd/1. The descriptor is duplicated and the path is not
    // opened: opening the path again would overwrite the file from its start.
    const int fd = ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) throw Error(Position{path}, "cannot open for writing: " + errno_text());
    buffer_ = std::make_unique<FdStreamBuf>(fd, path, true);
  } else {
    const bool in_place = is_special(path);
    if (!in_place) atomic_ = std::make_unique<AtomicPath>(path);
    const std::string& name = in_place ? path : atomic_->temporary();
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) throw Error(Position{path}, "cannot open for writing: " + errno_text());
    buffer_ = std::make_unique<FdStreamBuf>(fd, path, true);
  }
  std::streambuf* top = buffer_.get();
  if (is_gzip_name(path)) {
    auto gzip = std::make_unique<io::filtering_streambuf<io::output>>();
    gzip->push(io::gzip_compressor());
    gzip->push(*buffer_);
    top = gzip.get();
    gzip_ = std::move(gzip);
  }
  stream_ = std::make_unique<std::ostream>(top);
  stream_->exceptions(std::ios::badbit);
}

OutputFile::~OutputFile() {
  // The destructor of the gzip stream writes the gzip trailer, also when commit() was not called. If that write fails,
  // the exception must not leave ~OutputFile().
  try {
    gzip_.reset();
  } catch (const Error&) {
  }
}

void OutputFile::commit() {
  stream_->flush();
  if (gzip_) {
    auto& gzip = static_cast<io::filtering_streambuf<io::output>&>(*gzip_);
    // reset() makes the gzip compressor write its trailer, the last bytes of the .gz file.
    gzip.reset();
    buffer_->pubsync();
  }
  buffer_->close();
  if (atomic_) atomic_->commit();
}

}  // namespace heed
