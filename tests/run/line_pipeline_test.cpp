#include "heed/run/line_pipeline.h"

#include <doctest/doctest.h>

#include <atomic>
#include <sstream>
#include <stdexcept>

#include "heed/base/error.h"

using namespace heed;

namespace {

std::string run(const std::string& input, int threads, std::int64_t* lines = nullptr) {
  std::istringstream in(input);
  LineReader reader(in, "in");
  std::string out;
  run_line_pipeline(reader, threads,
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

TEST_CASE("an error of the taker ends the work on every thread") {
  std::istringstream in(std::string(200000, '\n'));
  LineReader reader(in, "in");
  std::int64_t taken = 0;
  const LineStages job{.work = [](const std::string&, std::int64_t, std::string& text) { text += 'x'; },
                       .take =
                           [&](const std::string&, std::int64_t lines) {
                             taken += lines;
                             if (taken >= 100000) throw std::runtime_error("no space left");
                           }};
  CHECK_THROWS_WITH(run_line_pipeline(reader, 3, job), "no space left");
  CHECK(taken >= 100000);
  CHECK(taken < 200000);
}

TEST_CASE("many chunks are taken at once, each once and in order, then by all threads") {
  std::string input;
  for (int i = 0; i < 100000; ++i) input += std::to_string(i) + "\n";
  for (const int threads : {1, 2, 5}) {
    CAPTURE(threads);
    std::istringstream in(input);
    LineReader reader(in, "in");
    std::string taken, rounds;
    std::atomic<int> calls = 0;
    int round_count = 0;
    run_line_pipeline(
        reader, threads,
        {.work = [](const std::string& line, std::int64_t, std::string& text) { text.append(line).append(1, '\n'); },
         .take = [&](const std::string& text, std::int64_t) { taken += text; },
         .take_round =
             [&](const std::vector<std::string_view>& texts, const RunOnThreads& run_on_threads) {
               CHECK(taken.size() == rounds.size());
               for (const std::string_view text : texts) rounds += text;
               run_on_threads([&](int) { ++calls; });
               ++round_count;
             }});
    CHECK(rounds == input);
    CHECK(taken == input);
    CHECK(calls == threads * round_count);
  }
}

TEST_CASE("where the input pauses, everything before has been taken and is flushed") {
  // An input that never has a line ready, but returns enough lines for all threads when it is read.
  constexpr int kLines = 3000;
  class Slow : public std::streambuf {
   public:
    explicit Slow(const std::function<void(int)>& asked) : asked_(asked) {}

   protected:
    int_type underflow() override {
      if (count_ == 5) return traits_type::eof();
      asked_(count_++);
      text_.clear();
      for (int i = 0; i < kLines; ++i) text_ += "a\n";
      setg(text_.data(), text_.data(), text_.data() + text_.size());
      return traits_type::to_int_type(text_[0]);
    }

   private:
    const std::function<void(int)>& asked_;
    std::string text_;
    int count_ = 0;
  };
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    std::string out;
    std::size_t flushed = 0;
    const std::function<void(int)> asked = [&](int before) {
      CHECK(flushed == kLines * static_cast<std::size_t>(before));
    };
    Slow slow(asked);
    std::istream in(&slow);
    LineReader reader(in, "in");
    run_line_pipeline(reader, threads,
                      {.work = [](const std::string& line, std::int64_t, std::string& text) { text += line; },
                       .take = [&](const std::string& text, std::int64_t) { out += text; },
                       .idle = [&] { flushed = out.size(); }});
    CHECK(out == std::string(5 * kLines, 'a'));
  }
}

TEST_CASE("where the input fails, everything before is handed out and flushed, on any number of threads") {
  // An input that reports more data after its lines as ready, but fails when these data are read.
  class Failing : public std::streambuf {
   public:
    explicit Failing(int lines) {
      for (int i = 0; i < lines; ++i) text_ += "line\n";
      setg(text_.data(), text_.data(), text_.data() + text_.size());
    }

   protected:
    std::streamsize showmanyc() override { return 1; }
    int_type underflow() override { throw std::runtime_error("the disk is gone"); }

   private:
    std::string text_;
  };
  for (const int threads : {1, 3})
    for (const int lines : {0, 1, 511, 512, 513, 20000}) {  // ends at the end of a chunk (512 lines) and within a chunk
      CAPTURE(threads);
      CAPTURE(lines);
      Failing source(lines);
      std::istream in(&source);
      LineReader reader(in, "in");
      std::int64_t taken = 0, flushed = 0;
      CHECK_THROWS_WITH(run_line_pipeline(reader, threads,
                                          {.work = [](const std::string&, std::int64_t, std::string&) {},
                                           .take = [&](const std::string&, std::int64_t count) { taken += count; },
                                           .idle = [&] { flushed = taken; }}),
                        "the disk is gone");
      CHECK(taken == lines);
      CHECK(flushed == lines);
    }
}
