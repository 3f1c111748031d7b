#include "heed/run/line_work.h"

#include <doctest/doctest.h>

#include <sstream>

#include "heed/base/error.h"

using namespace heed;

namespace {

std::string run(const std::string& input, int threads, std::int64_t* lines = nullptr) {
  std::istringstream in(input);
  LineReader reader(in, "in");
  std::string out;
  work_on_lines(reader, threads,
                {.work =
                     [](const std::string& line, std::int64_t number, std::string& text) {
                       if (line == "bad") throw Error(Position{"in", number}, "bad line");
                       text += std::to_string(number) + " " + line + "\n";
                     },
                 .take =
                     [&](const std::string& text, std::int64_t count) {
                       out += text;
                       if (lines) *lines += count;
                     }});
  return out;
}

}  // namespace

TEST_CASE("lines keep their order and their number for any number of threads") {
  std::string input, expected;
  for (int i = 1; i <= 30000; ++i) {
    input += std::string(static_cast<std::size_t>(i % 50), 'x') + "\n";
    expected += std::to_string(i) + " " + std::string(static_cast<std::size_t>(i % 50), 'x') + "\n";
  }
  for (const int threads : {1, 2, 7}) {
    std::int64_t lines = 0;
    CHECK(run(input, threads, &lines) == expected);
    CHECK(lines == 30000);
  }
  CHECK(run("", 2).empty());
  CHECK(run("\n\n", 2) == "1 \n2 \n");
  CHECK(run("no end", 1) == "1 no end\n");
}

TEST_CASE("the first bad line in input order is the one that is named") {
  std::string input;
  for (int i = 1; i <= 5000; ++i) input += i == 700 || i == 4000 || i == 300 ? "bad\n" : "x\n";
  for (const int threads : {1, 4}) CHECK_THROWS_WITH_AS(run(input, threads), "in:300: bad line", Error);
}
