#include "heed/checkpoint/integrity.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/base/thread_team.h"
#include "heed/base/threads.h"

namespace heed {
namespace {

constexpr std::string_view kMark = "heed-crc32=", kModelMark = "heed-crc32-model=";
constexpr std::size_t kLine = 20, kModelLine = 35;  // the mark, eight digits (a blank, eight more) and a line end

std::string hexadecimal(std::uint32_t number) {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(number));
  return digits;
}

std::string last_line(std::uint32_t crc) {
  return std::string(kMark) + hexadecimal(crc) + "\n";
}

/// `length`: of the lines of ranges before it.
std::string model_line(std::uint32_t crc, std::size_t length) {
  return std::string(kModelMark) + hexadecimal(crc) + " " + hexadecimal(static_cast<std::uint32_t>(length)) + "\n";
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw Error(Position{path}, "cannot open: " + errno_text());
  }
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::int64_t size() const { return std::max<std::int64_t>(0, ::lseek(descriptor_, 0, SEEK_END)); }

  /// The CRC-32 of some bytes; throws Error where they cannot be read. For any thread.
  std::uint32_t crc(ByteRange range) const {
    std::uint32_t crc = libdeflate_crc32(0, nullptr, 0);
    std::array<char, std::size_t{1} << 15> buffer;
    while (range.begin < range.end) {
      const std::size_t got = read(range, buffer);
      crc = libdeflate_crc32(crc, buffer.data(), got);
      range.begin += static_cast<std::int64_t>(got);
    }
    return crc;
  }

  std::string text(ByteRange range) const {
    std::string out(static_cast<std::size_t>(range.end - range.begin), '\0');
    for (std::size_t at = 0; at < out.size();)
      at += read({range.begin + static_cast<std::int64_t>(at), range.end}, std::span(out).subspan(at));
    return out;
  }

  Error damaged() const {
    return {Position{path_}, "is damaged: its checksum does not match its contents (restore it from a copy)"};
  }

 private:
  /// Some of the range's bytes, at least one.
  std::size_t read(ByteRange range, std::span<char> out) const {
    const auto most = std::min(static_cast<std::size_t>(range.end - range.begin), out.size());
    for (;;) {
      const ssize_t got = ::pread(descriptor_, out.data(), most, range.begin);
      if (got > 0) return static_cast<std::size_t>(got);
      if (got < 0 && errno == EINTR) continue;
      throw Error(Position{path_}, "cannot read: " + (got < 0 ? errno_text() : "it has become shorter"));
    }
  }

  std::string path_;
  int descriptor_;
};

std::int64_t size_of(ByteRange range) {
  return range.end - range.begin;
}

/// A CRC-32 and of how many bytes it is.
struct Checksum {
  std::uint32_t crc = 0;
  std::int64_t size = 0;

  /// Of these bytes and, behind them, the other's.
  Checksum& operator+=(const Checksum& other) {
    crc = static_cast<std::uint32_t>(crc32_combine(crc, other.crc, other.size));
    size += other.size;
    return *this;
  }
};

Checksum checksum(std::string_view text) {
  return {libdeflate_crc32(0, text.data(), text.size()), std::ssize(text)};
}

/// Those of some ranges. Several threads share large files: whoever starts a tool waits for this.
std::vector<Checksum> checksums(const OpenFile& file, std::span<const ByteRange> ranges) {
  constexpr std::int64_t kPiece = std::int64_t{8} << 20, kWorthAThread = 2 * kPiece;
  struct Piece {
    std::size_t range;
    ByteRange bytes;
    std::uint32_t crc;
  };
  std::vector<Piece> pieces;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    for (std::int64_t begin = ranges[i].begin; begin < ranges[i].end; begin += kPiece)
      pieces.push_back({i, {begin, std::min(ranges[i].end, begin + kPiece)}, 0});
    all += size_of(ranges[i]);
  }
  ThreadTeam(static_cast<int>(std::clamp<std::int64_t>(all / kWorthAThread, 1, std::min(4, available_threads()))))
      .run(static_cast<int>(pieces.size()), [&](int i) {
        Piece& piece = pieces[static_cast<std::size_t>(i)];
        piece.crc = file.crc(piece.bytes);
      });
  std::vector<Checksum> out(ranges.size());
  for (const Piece& piece : pieces) out[piece.range] += {piece.crc, size_of(piece.bytes)};
  return out;
}

/// That of some ranges, laid end to end.
Checksum checksum(const OpenFile& file, std::span<const ByteRange> ranges) {
  Checksum sum;
  for (const Checksum& part : checksums(file, ranges)) sum += part;
  return sum;
}

/// What is left of 0 .. end.
std::vector<ByteRange> without(std::span<const ByteRange> ranges, std::int64_t end) {
  std::vector<ByteRange> out;
  std::int64_t at = 0;
  for (const ByteRange& range : ranges) {
    out.push_back({at, range.begin});
    at = range.end;
  }
  out.push_back({at, end});
  return out;
}

/// The ranges that the lines of text name: ascending, and within 0 .. end.
std::optional<std::vector<ByteRange>> ranges_of(const std::string& lines, std::int64_t end) {
  std::vector<ByteRange> out;
  const char* const last = lines.data() + lines.size();
  for (const char* at = lines.data(); at != last;) {
    ByteRange range{0, 0};
    const auto [blank, wrong] = std::from_chars(at, last, range.begin);
    if (wrong != std::errc() || *blank != ' ') return std::nullopt;
    const auto [line_end, also_wrong] = std::from_chars(blank + 1, last, range.end);
    if (also_wrong != std::errc() || *line_end != '\n') return std::nullopt;
    if (range.begin < (out.empty() ? 0 : out.back().end) || range.end < range.begin || range.end > end)
      return std::nullopt;
    out.push_back(range);
    at = line_end + 1;
  }
  return out;
}

/// The same as checksum() of a file of `size` bytes in front of its last line, for the model alone. False where its
/// line is not there.
bool verify_model(const OpenFile& file, std::int64_t size) {
  constexpr std::int64_t kMostLines = std::int64_t{1} << 24;  // bytes
  const std::int64_t end = size - static_cast<std::int64_t>(kModelLine);
  if (end < 0) return false;
  const std::string line = file.text({end, size});
  if (line.compare(0, kModelMark.size(), kModelMark) != 0) return false;
  std::uint32_t length = 0;
  const char* const digits = line.data() + kModelMark.size() + 9;
  if (std::from_chars(digits, digits + 8, length, 16).ptr != digits + 8 || length > std::min(end, kMostLines))
    throw file.damaged();
  const std::int64_t begin = end - static_cast<std::int64_t>(length);
  const auto training = ranges_of(file.text({begin, end}), begin);
  if (!training) throw file.damaged();
  if (model_line(checksum(file, without(*training, end)).crc, length) != line) throw file.damaged();
  return true;
}

}  // namespace

void append_checksum(const std::string& path, std::span<const ByteRange> training) {
  const OpenFile file(path);
  const std::vector<ByteRange> others = without(training, file.size());  // one more
  std::vector<ByteRange> ranges = {others.front()};
  for (std::size_t i = 0; i < training.size(); ++i) ranges.insert(ranges.end(), {training[i], others[i + 1]});
  Checksum model, all;
  const std::vector<Checksum> parts = checksums(file, ranges);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i % 2 == 0) model += parts[i];
    all += parts[i];
  }
  std::string text;
  if (!training.empty()) {
    for (const ByteRange& range : training)
      text += std::to_string(range.begin) + " " + std::to_string(range.end) + "\n";
    model += checksum(text);
    text += model_line(model.crc, text.size());
    all += checksum(text);
  }
  text += last_line(all.crc);
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out << text << std::flush;
  if (!out) throw Error(Position{path}, "cannot write its checksum: " + errno_text());
}

bool verify_checksum(const std::string& path, Checked checked) {
  const OpenFile file(path);
  const std::int64_t size = file.size() - static_cast<std::int64_t>(kLine);
  if (size < 0) return false;
  const std::string line = file.text({size, size + static_cast<std::int64_t>(kLine)});
  if (line.compare(0, kMark.size(), kMark) != 0 || line.back() != '\n') return false;
  if (checked == Checked::model && verify_model(file, size)) return true;
  if (last_line(checksum(file, std::vector<ByteRange>{{0, size}}).crc) != line) throw file.damaged();
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
