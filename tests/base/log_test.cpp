#include "heed/base/log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <thread>

#include "heed/base/error.h"
#include "heed/base/utf8.h"
#include "screen.h"

using namespace heed;

namespace {

/// A pseudo terminal whose width the test sets and the Log asks for.
class PseudoTerminal {
 public:
  PseudoTerminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0 ||
        (fd_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY)) < 0)
      throw Error("no pseudo terminal: " + errno_text());
  }
  ~PseudoTerminal() {
    ::close(fd_);
    ::close(master_);
  }
  int fd() const { return fd_; }
  void resize(int width) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(width);
    if (::ioctl(master_, TIOCSWINSZ, &size) != 0) throw Error("cannot resize: " + errno_text());
  }

 private:
  int master_, fd_ = -1;
};

/// Returns the status line that Progress draws during a long translation.
StatusLine long_status() {
  return {"translating", 0.47, {{"1,234,567 lines", 2}, {"1,234/s", 3}, {"3m 20s left", 1}}};
}

}  // namespace

TEST_CASE("the log says what its verbosity allows; warnings always") {
  std::ostringstream out;
  Log quiet(out, "t", Verbosity::quiet);
  quiet.info("a");
  quiet.plain("b");
  quiet.warn("c");
  CHECK(out.str() == "t: warning: c\n");
  out.str("");
  Log normal(out, "t");
  normal.info("a");
  normal.detail("hidden");
  CHECK(out.str() == "t: a\n");
}

TEST_CASE("durations and counts read as people write them") {
  CHECK(format_duration(0.34) == "0.3 s");
  CHECK(format_duration(45) == "45 s");
  CHECK(format_duration(200) == "3m 20s");
  CHECK(format_duration(3900) == "1h 05m");
  CHECK(format_count(1234567) == "1,234,567");
  CHECK(format_count(-12) == "-12");
}

TEST_CASE("progress on a pipe is plain lines, and silence when quiet") {
  std::ostringstream out;
  Log log(out, "t");
  {
    Progress progress(log, "reading", "lines", 10, std::chrono::seconds(0));
    progress.to(5);
  }
  CHECK(out.str().find("reading  50% 5 lines") == 0);
  CHECK(out.str().find('\r') == std::string::npos);
  out.str("");
  Log quiet(out, "t", Verbosity::quiet);
  {
    Progress progress(quiet, "reading", "lines", 10, std::chrono::seconds(0));
    progress.to(5);
  }
  CHECK(out.str().empty());
}

TEST_CASE("a status line fits its width: the bar gets what is left, then the fields go by rank, then it is nothing") {
  const StatusLine line = long_status();
  CHECK(line.fit(200) == "translating [###########-------------]  47%  1,234,567 lines  1,234/s  3m 20s left");
  CHECK(line.fit(79) == "translating [#########------------]  47%  1,234,567 lines  1,234/s  3m 20s left");
  CHECK(line.fit(60) == "translating  47%  1,234,567 lines  1,234/s  3m 20s left");
  CHECK(line.fit(52) == "transla…  47%  1,234,567 lines  1,234/s  3m 20s left");
  CHECK(line.fit(39) == " 47%  1,234,567 lines  3m 20s left");
  CHECK(line.fit(19) == " 47%  3m 20s left");
  CHECK(line.fit(10) == " 47%");
  CHECK(line.fit(3).empty());
  CHECK(line.fit(0).empty());
  CHECK(StatusLine{"reading a\x1b[2Jb", std::nullopt, {{"5 lines", 1}}}.fit(80) == "reading a␛[2Jb 5 lines");
  for (int width = 0; width < 100; ++width) CHECK(display_width(line.fit(width)) <= width);
}

TEST_CASE("a terminal never keeps more of the status than the last one, in any width, also when it changes") {
  PseudoTerminal terminal;
  for (const bool reflow : {false, true}) {
    for (const std::vector<int>& widths :
         {std::vector<int>{80, 80, 80}, {40, 40}, {20, 20}, {80, 40, 20, 60, 10, 80}, {200, 20, 200}, {5, 3, 80}}) {
      CAPTURE(reflow);
      CAPTURE(widths.front());
      std::ostringstream out;
      Log log(out, "t", Verbosity::normal, terminal.fd());
      Screen screen(static_cast<std::size_t>(widths.front()));
      const auto show = [&] {
        screen.write(out.str());
        out.str("");
      };
      log.plain("ok");
      show();
      for (const int width : widths) {
        terminal.resize(width);
        screen.resize(static_cast<std::size_t>(width), reflow);
        for (int draw = 0; draw < 2; ++draw) {
          log.status(long_status());
          show();
          const std::vector<std::string> rows = screen.rows();
          if (width < 10) continue;
          REQUIRE(rows.size() == 2);
          CHECK(rows[0] == "ok");
          CHECK(rows[1] == long_status().fit(width - 1));
        }
      }
      log.clear_status();
      show();
      if (widths.back() > 10) CHECK(screen.rows() == std::vector<std::string>{"ok"});
    }
  }
}

TEST_CASE(
    "progress on a terminal is one line that fits, with what is left by the share of the input, and goes at the end") {
  PseudoTerminal terminal;
  terminal.resize(40);
  std::ostringstream out;
  Screen screen(40);
  Log log(out, "t", Verbosity::normal, terminal.fd());
  {
    Progress progress(log, "translating", "lines", [] { return std::optional<double>(0.5); });
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    progress.to(1000000);
    screen.write(out.str());
    out.str("");
    REQUIRE(screen.rows().size() == 1);
    CHECK(screen.rows()[0].starts_with(" 50%  1,000,000 lines  "));
    CHECK(screen.rows()[0].ends_with(" s left"));
  }
  screen.write(out.str());
  CHECK(screen.rows().empty());
}

TEST_CASE("data on the same terminal takes the status away, and a line of data that is not complete is left alone") {
  PseudoTerminal terminal;
  terminal.resize(80);
  std::ostringstream out;
  Screen screen(80);
  Log log(out, "t", Verbosity::normal, terminal.fd());
  const auto data = [&](const std::string& text) {
    log.before_data(text);
    out << text;
  };
  log.status(long_status());
  data("one\ntw");
  log.status(long_status());
  data("o\n");
  screen.write(out.str());
  CHECK(screen.rows() == std::vector<std::string>{"one", "two"});
  out.str("");
  log.status(long_status());
  screen.write(out.str());
  CHECK(screen.rows() == std::vector<std::string>{"one", "two", long_status().fit(79)});
}
