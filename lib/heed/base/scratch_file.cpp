#include "heed/base/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "heed/base/error.h"
#include "heed/base/log.h"

namespace heed {

ScratchFile::ScratchFile(const std::string& folder)
    : folder_(folder), file_(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
  if (file_ >= 0) return;
  // Some file systems know no files without a name.
  std::string path = folder + "/heed-XXXXXX";
  file_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (file_ < 0) fail("cannot create a temporary file");
  ::unlink(path.c_str());
}

ScratchFile::~ScratchFile() {
  ::close(file_);
}

void ScratchFile::fail(const std::string& what) const {
  throw Error(Position{folder_}, what + ": " + errno_text() + " (name another folder with --tempdir)");
}

void ScratchFile::append(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), size_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write a temporary file, after " + format_count(size_) + " bytes");
    size_ += written;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void ScratchFile::read(std::int64_t offset, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(file_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = EIO;
    if (count <= 0) fail("cannot read a temporary file");
    offset += count;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace heed
