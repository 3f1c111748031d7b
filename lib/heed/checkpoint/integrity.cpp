#include "heed/checkpoint/integrity.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/base/thread_team.h"
#include "heed/base/threads.h"

namespace heed {
namespace {

constexpr std::string_view kMark = "heed-crc32=", kOutlineMark = "heed-crc32-outline=";
// The lengths, in bytes, of the lines that last_line() and outline_line() return.
constexpr std::size_t kLine = 20, kOutlineLine = 37;

/// Returns a 32-bit number as eight hexadecimal digits.
std::string hexadecimal(std::uint32_t number) {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(number));
  return digits;
}

/// Returns the last line of a checkpoint file, "heed-crc32=XXXXXXXX". `crc` is the CRC-32 of all bytes before the line.
std::string last_line(std::uint32_t crc) {
  return std::string(kMark) + hexadecimal(crc) + "\n";
}

/// Returns the line "heed-crc32-outline=XXXXXXXX LLLLLLLL" of a checkpoint file. `crc` is the CRC-32 of the outline,
/// the bytes of the file apart from large arrays. `length` is the number of bytes of the lines that list the large
/// arrays; these lines stand directly before the returned line.
std::string outline_line(std::uint32_t crc, std::size_t length) {
  return std::string(kOutlineMark) + hexadecimal(crc) + " " + hexadecimal(static_cast<std::uint32_t>(length)) + "\n";
}

/// Reads a range of bytes of a file into a string.
std::string text_of(const OpenFile& file, ByteRange range) {
  std::string out(static_cast<std::size_t>(range.end - range.begin), '\0');
  file.read(range.begin, out);
  return out;
}

/// Computes the CRC-32 of a range of bytes of a file.
std::uint32_t crc_of(const OpenFile& file, ByteRange range) {
  std::uint32_t crc = libdeflate_crc32(0, nullptr, 0);
  std::array<char, std::size_t{1} << 15> buffer;
  while (range.begin < range.end) {
    const auto some =
        std::span(buffer).first(std::min(buffer.size(), static_cast<std::size_t>(range.end - range.begin)));
    file.read(range.begin, some);
    crc = libdeflate_crc32(crc, some.data(), some.size());
    range.begin += std::ssize(some);
  }
  return crc;
}

std::int64_t size_of(ByteRange range) {
  return range.end - range.begin;
}

/// Computes the checksum of each byte range of a file. Up to four threads share the work for a large file, because the
/// user waits for the program to start.
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
        piece.crc = crc_of(file, piece.bytes);
      });
  std::vector<Checksum> out(ranges.size());
  for (const Piece& piece : pieces) out[piece.range] += {piece.crc, size_of(piece.bytes)};
  return out;
}

/// Computes one checksum of several byte ranges of a file, as if the bytes of the ranges lay one after another.
Checksum checksum(const OpenFile& file, std::span<const ByteRange> ranges) {
  Checksum sum;
  for (const Checksum& part : checksums(file, ranges)) sum += part;
  return sum;
}

/// Returns the parts of the byte range `all` before, between and after the byte ranges in `ranges`, which must lie in
/// `all` in ascending order. Parts may be empty: n ranges give n + 1 parts.
std::vector<ByteRange> without(std::span<const ByteRange> ranges, ByteRange all) {
  std::vector<ByteRange> out;
  std::int64_t at = all.begin;
  for (const ByteRange& range : ranges) {
    out.push_back({at, range.begin});
    at = range.end;
  }
  out.push_back({at, all.end});
  return out;
}

/// Returns the byte ranges of data ranges (the large arrays of a checkpoint file), without the CRC-32s of the data
/// ranges.
std::vector<ByteRange> bytes_of(std::span<const DataRange> ranges) {
  std::vector<ByteRange> out;
  for (const DataRange& range : ranges) out.push_back(range.bytes);
  return out;
}

/// Parses the lines "BEGIN END CRC" and "BEGIN END" that list the data ranges (the large arrays) of a checkpoint file.
/// Returns nothing if a line is malformed, if the ranges do not ascend, or if a range reaches beyond the offset `end`.
std::optional<std::vector<DataRange>> ranges_of(const std::string& lines, std::int64_t end) {
  std::vector<DataRange> out;
  const char* const last = lines.data() + lines.size();
  for (const char* at = lines.data(); at != last;) {
    DataRange range{};
    const auto [blank, wrong] = std::from_chars(at, last, range.bytes.begin);
    if (wrong != std::errc() || blank == last || *blank != ' ') return std::nullopt;
    const auto [behind, also_wrong] = std::from_chars(blank + 1, last, range.bytes.end);
    if (also_wrong != std::errc() || behind == last) return std::nullopt;
    const char* line_end = behind;
    if (*behind == ' ') {
      std::uint32_t crc = 0;
      line_end = std::from_chars(behind + 1, last, crc, 16).ptr;
      if (line_end != behind + 9) return std::nullopt;
      range.crc = crc;
    }
    if (line_end == last || *line_end != '\n') return std::nullopt;
    if (range.bytes.begin < (out.empty() ? 0 : out.back().bytes.end) || range.bytes.end < range.bytes.begin ||
        range.bytes.end > end)
      return std::nullopt;
    out.push_back(range);
    at = line_end + 1;
  }
  return out;
}

}  // namespace

Checksum Checksum::of(std::span<const char> bytes) {
  return {libdeflate_crc32(0, bytes.data(), bytes.size()), std::ssize(bytes)};
}

Checksum& Checksum::operator+=(const Checksum& other) {
  crc = static_cast<std::uint32_t>(crc32_combine(crc, other.crc, other.size));
  size += other.size;
  return *this;
}

void RangeChecksum::add(std::int64_t begin, const Checksum& part) {
  const std::int64_t end = begin + part.size;
  const auto end_of = [](const auto& entry) { return entry.first + entry.second.size; };
  auto at = parts_.lower_bound(begin);
  if (at != parts_.begin() && end_of(*std::prev(at)) > begin) return;
  const auto behind = parts_.lower_bound(end);
  if (at != behind && end_of(*std::prev(behind)) > end) return;
  at = parts_.erase(at, behind);
  at = parts_.emplace_hint(at, begin, part);
  if (at != parts_.begin() && end_of(*std::prev(at)) == begin) {
    std::prev(at)->second += part;
    at = std::prev(parts_.erase(at));
  }
  if (const auto next = std::next(at); next != parts_.end() && next->first == end) {
    at->second += next->second;
    parts_.erase(next);
  }
}

std::vector<ByteRange> RangeChecksum::missing() const {
  std::vector<ByteRange> there;
  for (const auto& [begin, part] : parts_) there.push_back({begin, begin + part.size});
  std::vector<ByteRange> out = without(there, range_);
  std::erase_if(out, [](ByteRange range) { return range.begin == range.end; });
  return out;
}

void append_checksum(const std::string& path, const std::string& name, std::span<const ByteRange> weights,
                     std::span<const ByteRange> training) {
  const OpenFile file(path);
  std::vector<DataRange> data_ranges;
  for (const ByteRange& range : weights) data_ranges.push_back({range, 0});
  for (const ByteRange& range : training) data_ranges.push_back({range, std::nullopt});
  std::sort(data_ranges.begin(), data_ranges.end(),
            [](const DataRange& a, const DataRange& b) { return a.bytes.begin < b.bytes.begin; });
  // The outline is all bytes of the file apart from the data ranges (the large arrays). outline_parts[i] is the part of
  // the outline before data range i, and the last part is after all data ranges.
  const std::vector<ByteRange> outline_parts = without(bytes_of(data_ranges), {0, file.size()});
  // All byte ranges of the file in order: parts of the outline have even indices in this array, data ranges have odd
  // indices.
  std::vector<ByteRange> ranges = {outline_parts.front()};
  for (std::size_t i = 0; i < data_ranges.size(); ++i)
    ranges.insert(ranges.end(), {data_ranges[i].bytes, outline_parts[i + 1]});
  const std::vector<Checksum> parts = checksums(file, ranges);
  Checksum outline, all;
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    all += parts[i];
    if (i % 2 == 0) {
      outline += parts[i];
      continue;
    }
    const DataRange& range = data_ranges[i / 2];
    text += std::to_string(range.bytes.begin) + " " + std::to_string(range.bytes.end) +
            (range.crc ? " " + hexadecimal(parts[i].crc) : "") + "\n";
  }
  outline += Checksum::of(text);
  text += outline_line(outline.crc, text.size());
  all += Checksum::of(text);
  text += last_line(all.crc);
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out << text << std::flush;
  if (!out) throw Error(Position{name}, "cannot write its checksum: " + errno_text());
}

OpenFile::OpenFile(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw Error(Position{path}, "cannot open: " + errno_text());
}

OpenFile::~OpenFile() {
  ::close(descriptor_);
}

std::int64_t OpenFile::size() const {
  return std::max<std::int64_t>(0, ::lseek(descriptor_, 0, SEEK_END));
}

void OpenFile::read(std::int64_t offset, std::span<char> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Error(Position{path_}, "cannot read: " + (got < 0 ? errno_text() : "it has become shorter"));
    offset += got;
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

Error OpenFile::damaged() const {
  return {Position{path_}, "is damaged: its checksum does not match its contents (restore it from a copy)"};
}

CheckedFile::CheckedFile(const std::string& path, ChecksumScope scope) : OpenFile(path) {
  const std::int64_t end = size() - static_cast<std::int64_t>(kLine);
  if (end < 0) return;
  const std::string line = text_of(*this, {end, end + static_cast<std::int64_t>(kLine)});
  if (line.compare(0, kMark.size(), kMark) != 0 || line.back() != '\n') return;
  if (scope == ChecksumScope::outline && check_outline(end)) return;
  if (last_line(checksum(*this, std::vector<ByteRange>{{0, end}}).crc) != line) throw damaged();
}

bool CheckedFile::check_outline(std::int64_t size) {
  // The largest length, in bytes, that is accepted for the lines that list the data ranges.
  constexpr std::int64_t kMostLines = std::int64_t{1} << 24;
  const std::int64_t end = size - static_cast<std::int64_t>(kOutlineLine);
  if (end < 0) return false;
  const std::string line = text_of(*this, {end, size});
  if (line.compare(0, kOutlineMark.size(), kOutlineMark) != 0) return false;
  std::uint32_t length = 0;
  const char* const digits = line.data() + kOutlineMark.size() + 9;
  if (std::from_chars(digits, digits + 8, length, 16).ptr != digits + 8 || length > std::min(end, kMostLines))
    throw damaged();
  const std::int64_t begin = end - static_cast<std::int64_t>(length);
  const auto data_ranges = ranges_of(text_of(*this, {begin, end}), begin);
  if (!data_ranges) throw damaged();
  if (outline_line(checksum(*this, without(bytes_of(*data_ranges), {0, end})).crc, length) != line) throw damaged();
  std::copy_if(data_ranges->begin(), data_ranges->end(), std::back_inserter(unchecked_),
               [](const DataRange& range) { return range.crc.has_value(); });
  return true;
}

}  // namespace heed
