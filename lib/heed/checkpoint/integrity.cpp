#include "heed/checkpoint/integrity.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string_view>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/base/thread_team.h"
#include "heed/base/threads.h"

namespace heed {
namespace {

constexpr std::string_view kMark = "heed-crc32=";
constexpr std::size_t kTrailer = 20;  // the mark, eight digits and a line end

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw Error(Position{path}, "cannot open: " + errno_text());
  }
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::int64_t size() const { return std::max<std::int64_t>(0, ::lseek(descriptor_, 0, SEEK_END)); }

  /// Calls take(part) for bytes begin ... end - 1; throws Error where they cannot be read. For any thread.
  template <class Take>
  void read(std::int64_t begin, std::int64_t end, Take take) const {
    std::vector<char> buffer(std::size_t{1} << 18);
    while (begin < end) {
      const auto most = static_cast<std::size_t>(std::min(end - begin, std::ssize(buffer)));
      const ssize_t got = ::pread(descriptor_, buffer.data(), most, begin);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Error(Position{path_}, "cannot read: " + (got < 0 ? errno_text() : "it has become shorter"));
      take(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
      begin += got;
    }
  }

 private:
  std::string path_;
  int descriptor_;
};

/// The line with the CRC-32 of the first `size` bytes. Several threads share large files: whoever starts a tool waits
/// for this.
std::string checksum(const OpenFile& file, std::int64_t size) {
  constexpr std::int64_t kWorthAThread = std::int64_t{16} << 20;
  const auto parts =
      static_cast<int>(std::clamp<std::int64_t>(size / kWorthAThread, 1, std::min(4, available_threads())));
  const auto boundary = [&](int i) { return size / parts * i + size % parts * i / parts; };
  std::vector<std::uint32_t> crcs(static_cast<std::size_t>(parts), libdeflate_crc32(0, nullptr, 0));
  ThreadTeam(parts).run(parts, [&](int i) {
    std::uint32_t& crc = crcs[static_cast<std::size_t>(i)];
    file.read(boundary(i), boundary(i + 1),
              [&](std::string_view part) { crc = libdeflate_crc32(crc, part.data(), part.size()); });
  });
  uLong all = crcs[0];
  for (int i = 1; i < parts; ++i)
    all = crc32_combine(all, crcs[static_cast<std::size_t>(i)], boundary(i + 1) - boundary(i));
  char text[kTrailer + 1];
  std::snprintf(text, sizeof text, "%s%08x\n", std::string(kMark).c_str(), static_cast<unsigned>(all));
  return text;
}

}  // namespace

void append_checksum(const std::string& path) {
  const OpenFile file(path);
  const std::string line = checksum(file, file.size());
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out << line << std::flush;
  if (!out) throw Error(Position{path}, "cannot write its checksum: " + errno_text());
}

bool verify_checksum(const std::string& path) {
  const OpenFile file(path);
  const std::int64_t size = file.size() - static_cast<std::int64_t>(kTrailer);
  if (size < 0) return false;
  std::string line;
  file.read(size, size + static_cast<std::int64_t>(kTrailer), [&](std::string_view part) { line += part; });
  if (line.compare(0, kMark.size(), kMark) != 0 || line.back() != '\n') return false;
  if (checksum(file, size) != line)
    throw Error(Position{path}, "is damaged: its checksum does not match its contents (restore it from a copy)");
  return true;
}

void try_in_child(const std::string& path, const std::function<void()>& read) {
  const pid_t child = ::fork();
  if (child < 0) throw Error(Position{path}, "cannot start a process to read it: " + errno_text());
  if (child == 0) {
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDERR_FILENO);  // whatever a crash would print
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
    ::alarm(60);
    try {
      read();
    } catch (const std::exception&) {
    }
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(Position{path}, "is damaged: the HDF5 library cannot read it");
}

}  // namespace heed
