#include "heed/image/read_image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "heed/base/error.h"
#include "heed/image/image_format.h"
#include "heed/image/readers.h"

namespace heed {

namespace {

/// An open file, which the destructor closes.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw Error(Position{path}, "cannot open: " + errno_text());
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  struct stat status() const {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) throw Error(Position{path_}, "cannot read: " + errno_text());
    return status;
  }

  /// Appends at most `count` bytes to `bytes`; returns false at the end of the file.
  bool read(std::string& bytes, std::size_t count) const {
    const std::size_t before = bytes.size();
    bytes.resize(before + count);
    ssize_t got;
    do {
      got = ::read(fd_, bytes.data() + before, count);
    } while (got < 0 && errno == EINTR);
    if (got < 0) throw Error(Position{path_}, "cannot read: " + errno_text());
    bytes.resize(before + static_cast<std::size_t>(got));
    return got > 0;
  }

 private:
  const std::string& path_;
  int fd_;
};

// The greatest size of a file: more than an image of kMostPixels pixels needs, so that a device without an end cannot
// fill the memory.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kFirstBlock = std::size_t{64} << 10, kBlock = std::size_t{1} << 20;

/// Throws Error where the operating system would read only the beginning of a path.
void check_bytes_of_path(const std::string& path) {
  if (path.find('\0') != std::string::npos) throw Error("the path of an image has a NUL byte");
}

/// Returns the bytes of an image file. The start is checked before the rest is read, because the file may be large and
/// no image.
std::string read_file(const std::string& path) {
  check_bytes_of_path(path);
  const OpenFile file(path);
  const struct stat status = file.status();
  if (S_ISDIR(status.st_mode)) throw Error(Position{path}, "is a folder (name an image file)");
  const bool regular = S_ISREG(status.st_mode) && status.st_size > 0;  // else a pipe or a device of unknown size
  const std::size_t size = regular ? static_cast<std::size_t>(status.st_size) : kMostBytes + 1;
  std::string bytes;
  while (bytes.size() < std::min<std::size_t>(size, kFormatBytes) && file.read(bytes, std::min(size, kFirstBlock))) {
  }
  image_format(bytes, path);
  const auto check = [&](std::size_t count) {
    if (count > kMostBytes) throw Error(Position{path}, "has more than 1 GiB, too much for an image");
  };
  if (regular) check(size);
  while (bytes.size() < size && file.read(bytes, std::min(size - bytes.size(), kBlock))) {
  }
  check(bytes.size());
  return bytes;
}

}  // namespace

void check_image_path(const std::string& path) {
  check_bytes_of_path(path);
  if (::access(path.c_str(), R_OK) != 0) throw Error(Position{path}, "cannot open: " + errno_text());
}

Image decode_image(std::string_view bytes, int channels, const std::string& name) {
  if (channels != 1 && channels != 3) throw Error("internal: an image has 1 or 3 channels");
  switch (image_format(bytes, name)) {
    case ImageFormat::png:
      return read_png(bytes, channels, name);
    case ImageFormat::jpeg:
      return read_jpeg(bytes, channels, name);
    case ImageFormat::pnm:
      return read_pnm(bytes, channels, name);
  }
  throw Error("internal: an image format without a reader");
}

Image read_image(const std::string& path, int channels) {
  return decode_image(read_file(path), channels, path);
}

void check_image_size(std::uint64_t width, std::uint64_t height, const std::string& name) {
  const std::string size = std::to_string(width) + " x " + std::to_string(height);
  if (width == 0 || height == 0)
    throw Error(Position{name}, "has no pixels: its size is " + size + " (make the image again)");
  if (width > kMostPixels || height > kMostPixels || width * height > kMostPixels)
    throw Error(Position{name}, "has " + size + " pixels, more than 100 million (make the image smaller)");
}

void fail_truncated(const std::string& name) {
  throw Error(Position{name}, "is truncated: the image ends too early (copy or make the image again)");
}

void fail_damaged(const std::string& name, const std::string& what) {
  throw Error(Position{name}, "is damaged: " + what + " (copy or make the image again)");
}

}  // namespace heed
