#include "heed/base/log.h"

#include <doctest/doctest.h>

#include <sstream>

using namespace heed;

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
