#include "heed/run/ranks.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "../dist/thread_ranks.h"

namespace heed {
namespace {

TEST_CASE("ranks: the text that rank 0 reads arrives on all, whatever its length") {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kBlock, kBlock + 1, 2 * kBlock + 77}) {
    std::string text(size, ' ');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i % 251);
    std::vector<std::string> got(3);
    run_ranks(3, [&](Communicator& ranks) {
      std::istringstream in(ranks.rank() == 0 ? text : "what the others are given");
      SharedInput shared(ranks, in);
      std::istream input(&shared);
      std::ostringstream out;
      for (char c = 0; input.get(c);) out << c;
      got[static_cast<std::size_t>(ranks.rank())] = out.str();
    });
    for (const std::string& each : got) CHECK(each == text);
  }
}

TEST_CASE("ranks: an error of the stream that rank 0 reads is thrown on all") {
  struct Broken : std::streambuf {
    int_type underflow() override { throw Error("standard input: cannot read: Is a directory"); }
  };
  std::vector<std::string> got(3);
  run_ranks(3, [&](Communicator& ranks) {
    Broken broken;
    std::istream in(&broken);
    SharedInput shared(ranks, in);
    try {
      shared.sgetc();
    } catch (const Error& error) {
      got[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
  });
  for (const std::string& each : got) CHECK(each == "standard input: cannot read: Is a directory");
}

}  // namespace
}  // namespace heed
