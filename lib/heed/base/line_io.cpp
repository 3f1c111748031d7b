#include "heed/base/line_io.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/iostreams/filter/gzip.hpp>
#include <cstring>

#include "heed/base/utf8.h"

namespace heed {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

bool take_byte_order_mark(std::string& first_line, const Position& where) {
  check_text_start(first_line, where);
  if (!first_line.starts_with(kByteOrderMark)) return false;
  first_line.erase(0, kByteOrderMark.size());
  return true;
}

std::string byte_order_mark_note(const std::string& name) {
  return name + ": starts with a byte-order mark (U+FEFF), which is left out";
}

void tell_of_byte_order_mark(const std::string& path, Log& log) {
  struct stat status {};
  if (path.empty() || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  std::string start(kByteOrderMark.size(), '\0');
  const auto in = open_input(path);
  in->read(start.data(), static_cast<std::streamsize>(start.size()));
  if (start == kByteOrderMark) log.info(byte_order_mark_note(path));
}

LineReader::LineReader(const std::string& path, InvalidUtf8 policy)
    : owned_(open_input(path)), in_(owned_.get()), name_(input_name(path)), policy_(policy) {}

LineReader::LineReader(std::istream& in, std::string name, InvalidUtf8 policy)
    : in_(&in), name_(std::move(name)), policy_(policy) {}

bool LineReader::take_line(std::string& line) {
  const void* found = std::memchr(buffer_.data() + searched_, '\n', buffer_.size() - searched_);
  if (!found && !(ended_ && at_ < buffer_.size())) {
    searched_ = buffer_.size();
    return false;
  }
  const std::size_t end =
      found ? static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()) : buffer_.size();
  std::size_t length = end - at_;
  if (length > 0 && found && buffer_[end - 1] == '\r') --length;
  line.assign(buffer_, at_, length);
  at_ = searched_ = std::min(end + 1, buffer_.size());
  return true;
}

/// Reads the bytes that the input has ready into the buffer, and waits until at least one byte is ready. Returns false
/// at the end of the input.
bool LineReader::fill() {
  buffer_.erase(0, at_);
  searched_ -= at_;
  at_ = 0;
  if (buffer_.size() > kMaxLineBytes)
    throw Error(Position{name_, line_number_ + 1}, "the line is longer than " + std::to_string(kMaxLineBytes >> 20) +
                                                       " MiB (is this a text file with one sentence per line?)");
  std::streambuf* source = in_->rdbuf();
  try {
    if (source->sgetc() == std::char_traits<char>::eof()) {
      ended_ = true;
      return false;
    }
    constexpr std::streamsize kChunk = 1 << 16;
    const std::streamsize there = std::clamp<std::streamsize>(source->in_avail(), 1, kChunk);
    const std::size_t before = buffer_.size();
    buffer_.resize(before + static_cast<std::size_t>(there));
    const std::streamsize got = source->sgetn(buffer_.data() + before, there);
    buffer_.resize(before + static_cast<std::size_t>(got));
  } catch (const boost::iostreams::gzip_error&) {
    throw Error(Position{name_, line_number_ + 1}, "the gzip data is damaged or cut short (make the file again)");
  }
  return true;
}

bool LineReader::next(std::string& line) {
  while (!take_line(line)) {
    if (ended_ || (!fill() && at_ == buffer_.size())) return false;
  }
  if (++line_number_ == 1 && (marked_ = take_byte_order_mark(line, position())) && line.empty() && ended_) {
    // The input holds only a byte-order mark, which is not text: the input has no lines, so the line is not counted.
    line_number_ = 0;
    return false;
  }
  check_utf8(line);
  return true;
}

bool LineReader::ready() {
  for (;;) {
    if (ended_ || std::memchr(buffer_.data() + searched_, '\n', buffer_.size() - searched_)) return true;
    searched_ = buffer_.size();
    const std::streamsize there = in_->rdbuf()->in_avail();
    if (there == 0) return false;
    if (!fill()) return true;
  }
}

std::optional<double> LineReader::share() const {
  const auto place = input_place(*in_);
  if (!place || place->size <= 0) return std::nullopt;
  const auto taken = static_cast<double>(place->read) - static_cast<double>(buffer_.size() - at_);
  return std::clamp(taken / static_cast<double>(place->size), 0.0, 1.0);
}

void LineReader::check_utf8(std::string& line) {
  const std::size_t bad = find_invalid_utf8(line);
  if (bad == std::string_view::npos) return;
  const Position where = position(static_cast<std::int64_t>(bad) + 1);
  if (policy_ == InvalidUtf8::fail)
    throw Error(where, "invalid UTF-8 (convert the file with iconv, or allow it with --on-invalid-utf8 replace)");
  if (invalid_lines_++ == 0) first_invalid_ = where;
  if (policy_ == InvalidUtf8::replace && replaces_) line = replace_invalid_utf8(line);
}

void LineReader::report(Log& log) const {
  if (marked_) log.info(byte_order_mark_note(name_));
  if (invalid_lines_ == 0) return;
  log.warn(first_invalid_.text() + ": invalid UTF-8" +
           (policy_ == InvalidUtf8::replace ? " replaced by U+FFFD" : " kept as it is") + "; lines with such bytes: " +
           std::to_string(invalid_lines_) + " (--on-invalid-utf8 fail stops at the first)");
}

LineReader open_lines(const std::string& path, std::istream& in, InvalidUtf8 policy) {
  return path.empty() || path == "-" ? LineReader(in, input_name("-"), policy) : LineReader(path, policy);
}

void fail_unequal(LineReader& one, LineReader& other, const std::string& rule) {
  constexpr std::size_t kMostCounted = 32 << 20;
  bool ended = true;
  for (LineReader* const reader : {&one, &other}) {
    std::size_t bytes = 0;
    const bool endless = !reader->share();
    for (std::string line; ended && reader->next(line); ended = !endless || bytes < kMostCounted)
      bytes += line.size() + 1;
  }
  const bool is_shorter = one.line_number() < other.line_number();
  const LineReader &shorter = is_shorter ? one : other, &longer = is_shorter ? other : one;
  throw Error(Position{shorter.name()}, "has " + count_of(shorter.line_number(), "line") + ", but " + longer.name() +
                                            " has " + (ended ? "" : "more than ") +
                                            count_of(longer.line_number(), "line") + " (" + rule + ")");
}

std::vector<std::string> read_lines(const std::string& path, InvalidUtf8 policy) {
  LineReader reader(path, policy);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

}  // namespace heed
