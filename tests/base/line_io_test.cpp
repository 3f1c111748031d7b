#include "heed/base/line_io.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "heed/base/streams.h"

using namespace heed;

namespace {

std::vector<std::string> lines_of(const std::string& text, InvalidUtf8 policy = InvalidUtf8::replace) {
  std::istringstream in(text);
  LineReader reader(in, "text", policy);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

using Lines = std::vector<std::string>;

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("heed_line_io_" + name)).string();
}

}  // namespace

TEST_CASE("only LF ends a line") {
  CHECK(lines_of("") == Lines{});
  CHECK(lines_of("\n") == Lines{""});
  CHECK(lines_of("a\r\nb") == Lines{"a", "b"});
  CHECK(lines_of("a\rb\tc\xE2\x80\xA8"
                 "d\xC2\x85"
                 "e\n") == Lines{"a\rb\tc\xE2\x80\xA8"
                                 "d\xC2\x85"
                                 "e"});
  CHECK(lines_of(std::string("a\0b\n", 4)) == Lines{std::string("a\0b", 3)});
  CHECK(lines_of("a\n\nb\n") == Lines{"a", "", "b"});
}

TEST_CASE("invalid UTF-8 is replaced, kept or an error with its position") {
  CHECK(lines_of("a\xFF\n") == Lines{"a\xEF\xBF\xBD"});
  CHECK(lines_of("a\xFF\n", InvalidUtf8::keep) == Lines{"a\xFF"});
  CHECK_THROWS_WITH_AS(
      lines_of("ok\nab\xFF\n", InvalidUtf8::fail),
      "text:2:3: invalid UTF-8 (convert the file with iconv, or allow it with --on-invalid-utf8 replace)", Error);
  std::istringstream in("ok\nb\xFF\n\xFE\n");
  LineReader reader(in, "text");
  for (std::string line; reader.next(line);) continue;
  std::ostringstream said;
  Log log(said, "tool", Verbosity::quiet);
  reader.report(log);
  CHECK(said.str() ==
        "tool: warning: text:2:2: invalid UTF-8 replaced by U+FFFD; lines with such bytes: 2 "
        "(--on-invalid-utf8 fail stops at the first)\n");
}

TEST_CASE("a line of a megabyte is read whole, an endless one is an error that names it") {
  const std::string big(1 << 20, 'x');
  CHECK(lines_of(big + "\n" + big) == Lines{big, big});
  const std::string huge(LineReader::kMaxLineBytes + (1 << 17), 'x');
  CHECK_THROWS_WITH_AS(lines_of("a\n" + huge),
                       "text:2: the line is longer than 64 MiB (is this a text file with one sentence per line?)",
                       Error);
}

TEST_CASE("gzip is read and written by name, damaged gzip is an error, gzip on a plain stream gets advice") {
  const std::string path = scratch("a.txt.gz");
  {
    OutputFile out(path);
    out.stream() << "one\ntwo\n";
    CHECK(!std::filesystem::exists(path));  // the file appears at commit() only
    out.commit();
  }
  CHECK(read_lines(path) == Lines{"one", "two"});
  std::ifstream raw(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(raw), {}};
  CHECK_THROWS_WITH_AS(lines_of(bytes), "text:1: looks like gzip data (name it FILE.gz, or pipe it through zcat)",
                       Error);
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() - 6);
  CHECK_THROWS_AS(read_lines(path), Error);
  std::ofstream(path, std::ios::binary) << "plain text\n";
  CHECK_THROWS_WITH_AS(
      read_lines(path),
      (path + ": is not gzip data, although its name ends in .gz (take .gz off the name, or compress the file)")
          .c_str(),
      Error);
  std::filesystem::remove(path);
}

TEST_CASE("a gzip file is always ready: nobody types at its other end") {
  const std::string path = scratch("ready.txt.gz");
  OutputFile out(path);
  for (int i = 0; i < 20000; ++i) out.stream() << "line " << i << '\n';
  out.commit();
  LineReader reader(path);
  int ready = 0;
  for (std::string line; reader.next(line);) ready += reader.ready();
  CHECK(ready == 20000);
  std::filesystem::remove(path);
}

TEST_CASE("missing files and folders are named") {
  CHECK_THROWS_WITH_AS(read_lines("/no/such/file"), "/no/such/file: cannot open: No such file or directory", Error);
  CHECK_THROWS_WITH_AS(read_lines("/tmp"), "/tmp: is a folder (name a file)", Error);
}

TEST_CASE("an uncommitted file leaves the old one as it was, and a full disk is an error") {
  const std::string path = scratch("b.txt");
  std::ofstream(path) << "old\n";
  {
    OutputFile out(path);
    out.stream() << "new\n";
  }
  CHECK(read_lines(path) == Lines{"old"});
  std::filesystem::remove(path);
  if (std::filesystem::exists("/dev/full")) {
    OutputFile full("/dev/full");
    full.stream() << "x";
    CHECK_THROWS_WITH_AS(full.commit(), "/dev/full: cannot write: No space left on device", Error);
  }
}

TEST_CASE("an output file that is a symbolic link replaces what the link leads to, and the link stays") {
  namespace fs = std::filesystem;
  const fs::path folder = scratch("links");
  fs::create_directories(folder / "there");
  std::ofstream(folder / "there/file") << "old\n";
  fs::create_symlink("there/file", folder / "relative");
  fs::create_symlink(folder / "relative", folder / "link");
  fs::create_symlink("there/new", folder / "dangling");
  const auto write = [&](const char* name) {
    AtomicPath path(folder / name);
    CHECK(fs::path(path.temporary()).parent_path() == folder / "there");
    std::ofstream(path.temporary()) << name << '\n';
    path.commit();
    CHECK(fs::is_symlink(folder / name));
    CHECK(read_lines(folder / name) == Lines{name});
  };
  write("link");
  CHECK(read_lines(folder / "there/file") == Lines{"link"});
  CHECK(fs::read_symlink(folder / "relative") == "there/file");
  write("relative");
  write("dangling");
  CHECK(fs::is_regular_file(folder / "there/new"));
  CHECK(std::distance(fs::directory_iterator(folder / "there"), fs::directory_iterator()) == 2);
  fs::create_symlink("circle", folder / "circle");
  CHECK_THROWS_WITH_AS(AtomicPath(folder / "circle"),
                       doctest::Contains("/circle: cannot be written: too many levels of symbolic links"), Error);
  fs::create_symlink("nowhere/file", folder / "lost");
  CHECK_THROWS_WITH_AS(OutputFile(folder / "lost"),
                       doctest::Contains("/lost: cannot open for writing: No such file or directory"), Error);
  fs::remove_all(folder);
}

TEST_CASE("ready() tells whether a whole line is there, without waiting") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  FdStreamBuf buffer(ends[0], "pipe", true);
  std::istream in(&buffer);
  LineReader reader(in, "pipe");
  std::string line;
  CHECK(!reader.ready());
  REQUIRE(::write(ends[1], "one\ntw", 6) == 6);
  CHECK(reader.ready());
  CHECK(reader.next(line));
  CHECK(!reader.ready());
  REQUIRE(::write(ends[1], "o", 1) == 1);
  ::close(ends[1]);
  CHECK(reader.ready());  // the end of the input counts as ready
  CHECK(reader.next(line));
  CHECK(line == "two");
  CHECK(!reader.next(line));
  CHECK(reader.line_number() == 2);
}

TEST_CASE("a pipe that another program has made non-blocking is read and written as any other") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_NONBLOCK) == 0);
  const std::string text = std::string(300000, 'a') + "\n";  // more than the pipe holds
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    FdStreamBuf buffer(ends[1], "out", true);
    std::ostream out(&buffer);
    out.exceptions(std::ios::badbit);
    CHECK_NOTHROW(out << text << std::flush);
  });
  FdStreamBuf buffer(ends[0], "in", true);
  std::istream in(&buffer);
  LineReader reader(in, "in");
  std::string line;
  CHECK(reader.next(line));
  CHECK(line.size() == text.size() - 1);
  writer.join();
  CHECK(!reader.next(line));
}

TEST_CASE("a byte-order mark at the start is no text, and said once; in the middle it is text") {
  const std::string mark = "\xEF\xBB\xBF";
  CHECK(lines_of(mark + "a\nb\n") == Lines{"a", "b"});
  CHECK(lines_of(mark + "a\n" + mark + "b\n") == Lines{"a", mark + "b"});
  CHECK(lines_of(mark + mark + "a") == Lines{mark + "a"});
  CHECK(lines_of(mark) == Lines{});
  CHECK(lines_of(mark + "\n") == Lines{""});
  CHECK(lines_of(mark + "\r\n") == Lines{""});
  CHECK(lines_of("\xEF\xBB") == Lines{"\uFFFD"});
  CHECK_THROWS_WITH_AS(
      lines_of(mark + "ab\xFF\n", InvalidUtf8::fail),
      "text:1:3: invalid UTF-8 (convert the file with iconv, or allow it with --on-invalid-utf8 replace)", Error);
  for (const bool marked : {true, false}) {
    std::istringstream in((marked ? mark : "") + "a\nb\n");
    LineReader reader(in, "text");
    for (std::string line; reader.next(line);) continue;
    std::ostringstream said, quiet;
    Log log(said, "tool"), silent(quiet, "tool", Verbosity::quiet);
    reader.report(log);
    reader.report(silent);
    CHECK(said.str() == (marked ? "tool: text: starts with a byte-order mark (U+FEFF), which is left out\n" : ""));
    CHECK(quiet.str().empty());
  }
}

TEST_CASE("a mark that comes byte by byte through a pipe is recognised") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  FdStreamBuf buffer(ends[0], "pipe", true);
  std::istream in(&buffer);
  LineReader reader(in, "pipe");
  for (const char byte : std::string("\xEF\xBB\xBFx\n")) {
    CHECK(!reader.ready());
    REQUIRE(::write(ends[1], &byte, 1) == 1);
  }
  ::close(ends[1]);
  std::string line;
  REQUIRE(reader.next(line));
  CHECK(line == "x");
  CHECK(!reader.next(line));
}

TEST_CASE("UTF-16 and compressed data get advice, by their first bytes and by their names") {
  const std::string utf16 = "text:1: looks like UTF-16 text (make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE | ...)";
  CHECK_THROWS_WITH_AS(lines_of(std::string("\xFF\xFE"
                                            "a\0\n\0",
                                            6)),
                       utf16.c_str(), Error);
  CHECK_THROWS_WITH_AS(lines_of(std::string("\xFE\xFF\0a\0\n", 6)), utf16.c_str(), Error);
  CHECK_THROWS_WITH_AS(lines_of(std::string("\xFF\xFE\0\0a\0\0\0", 8)),
                       "text:1: looks like UTF-32 text (make it UTF-8: iconv -f UTF-32 -t UTF-8 FILE | ...)", Error);
  CHECK_THROWS_WITH_AS(
      lines_of(std::string("\xFD"
                           "7zXZ\0\0\4",
                           8)),
      "text:1: looks like xz data (only gzip is unpacked here: xz -dc FILE | ..., or unpack it with xz -d)", Error);
  CHECK_THROWS_WITH_AS(
      lines_of("BZh91AY&SY\xD9"),
      "text:1: looks like bzip2 data (only gzip is unpacked here: bzip2 -dc FILE | ..., or unpack it with bzip2 -d)",
      Error);
  CHECK_THROWS_WITH_AS(
      lines_of("\x28\xB5\x2F\xFD$"),
      "text:1: looks like zstd data (only gzip is unpacked here: zstd -dc FILE | ..., or unpack it with zstd -d)",
      Error);
  CHECK(lines_of("BZh9 is how a bzip2 file starts\n").size() == 1);
  for (const std::string ending : {"xz", "bz2", "zst"}) {
    const std::string path = scratch("named." + ending);
    std::ofstream(path) << "x\n";
    CHECK_THROWS_AS(read_lines(path), Error);
    std::filesystem::remove(path);
    CHECK_THROWS_AS(OutputFile out(path), Error);
    CHECK(!std::filesystem::exists(path));
  }
  const std::string path = scratch("b.xz");
  CHECK_THROWS_WITH_AS(read_lines(path), (path + ": cannot open: No such file or directory").c_str(), Error);
  CHECK_THROWS_WITH_AS(OutputFile out(path),
                       (path + ": cannot be written as xz data (name it .gz, or pipe it: ... | xz > FILE)").c_str(),
                       Error);
}

TEST_CASE("unequal inputs: lines are counted to the end, but not without end on an input that is no file") {
  // A stream that repeats a text of 16 bytes without end, or `times` times.
  struct Repeated : std::streambuf {
    std::string text = "eight lines a b\n";
    std::int64_t left;
    explicit Repeated(std::int64_t times) : left(times) {}
    int_type underflow() override {
      if (left-- == 0) return traits_type::eof();
      setg(text.data(), text.data(), text.data() + text.size());
      return traits_type::to_int_type(text[0]);
    }
  };
  const auto message = [](std::int64_t times) {
    Repeated repeated(times);
    std::istringstream one("a\n");
    std::istream many(&repeated);
    LineReader shorter(one, "short"), longer(many, "long");
    std::string line;
    shorter.next(line);
    for (LineReader* reader : {&shorter, &longer}) reader->next(line);
    try {
      fail_unequal(shorter, longer, "rule");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(message(300'000) == "short: has 1 line, but long has 300,000 lines (rule)");
  const std::string endless = message(-1);
  CHECK(endless == "short: has 1 line, but long has more than 2,097,153 lines (rule)");
}

TEST_CASE("a file tells the share that its lines so far make up, whatever is buffered; other inputs do not") {
  const std::string path = scratch("share.txt");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line number " + std::to_string(1000 + i) + "\n";
  std::ofstream(path) << text;
  LineReader reader(path);
  std::string line;
  for (int i = 0; i < 250; ++i) REQUIRE(reader.next(line));
  REQUIRE(reader.share());
  CHECK(*reader.share() == doctest::Approx(0.25));
  while (reader.next(line)) continue;
  CHECK(*reader.share() == 1);
  CHECK(!reader.typed());
  std::istringstream in("a\nb\n");
  LineReader other(in, "text");
  CHECK(other.next(line));
  CHECK(!other.share());
  std::ofstream(path, std::ios::trunc).close();
  CHECK(!LineReader(path).share());
  const std::string zipped = scratch("share.txt.gz");
  OutputFile out(zipped);
  out.stream() << text;
  out.commit();
  LineReader unzipped(zipped);
  while (unzipped.next(line)) CHECK((unzipped.share() && *unzipped.share() >= 0 && *unzipped.share() <= 1));
  CHECK(*unzipped.share() == 1);
  std::filesystem::remove(path);
  std::filesystem::remove(zipped);
}
