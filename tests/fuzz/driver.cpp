#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "heed/base/random.h"

// Runs a fuzz target without libFuzzer, for ctest: first on the seeds themselves, then on random mutations of the
// seeds, which are the same in every run.
//
// usage: heed_fuzz_TARGET [-runs=N] [-seed=N] [FILE or FOLDER...]
//
// If the program ends early, the file fuzz-input contains the input that made it end.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kMostBytes = 2048;

std::vector<std::string> read_seeds(const std::vector<std::string>& paths) {
  std::vector<std::string> seeds;
  const auto read = [&](const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    seeds.push_back(text.str());
  };
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      read(path);
      continue;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) read(file);
  }
  return seeds;
}

/// The random numbers of one mutation.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t run) : stream_(seed, heed::RandomUse::shuffle, run) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : stream_.below(n, drawn_++); }

 private:
  heed::RandomStream stream_;
  std::uint64_t drawn_ = 0;
};

/// Texts on which parsers and tokenisers often fail; mutations insert them.
constexpr std::string_view kPieces[] = {"\n",
                                        "\r\n",
                                        "\t",
                                        " ",
                                        "  ",
                                        std::string_view("\0", 1),
                                        "\xff",
                                        "\xc3",
                                        "\xe2\x80\xa8",
                                        "\xc2\x85",
                                        "\xef\xbf\xbd",
                                        "\xcc\x81",
                                        "\xe2\x80\x8b",
                                        "\xd7\xa9",
                                        "\xf0\x9f\x98\x80",
                                        "\xe4\xb8\xad",
                                        "...",
                                        "U.S.",
                                        "'s",
                                        "\"",
                                        "&amp;",
                                        "<b>",
                                        "a.b@c.de",
                                        "http://",
                                        "5,300.50",
                                        "@-@",
                                        "@@",
                                        "</w>",
                                        "-1",
                                        "0",
                                        "99999999999999999999",
                                        "1e400",
                                        "nan",
                                        "%s",
                                        "\\",
                                        "(",
                                        "[",
                                        "--",
                                        "=",
                                        "#",
                                        ":",
                                        "/",
                                        "|||",
                                        "\xe2\x96\x81",
                                        "<unk>",
                                        "DOTMULTI",
                                        "THISISPROTECTED000"};

std::string mutate(std::string text, const std::vector<std::string>& seeds, Dice& dice) {
  for (std::size_t steps = 1 + dice.below(8); steps > 0; --steps) {
    const std::size_t at = dice.below(text.size() + 1),
                      length = dice.below(std::min<std::size_t>(text.size() - at, 32) + 1);
    switch (dice.below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[dice.below(std::size(kPieces))]);
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(dice.below(256));
        break;
      case 3:
        text.insert(at, text.substr(dice.below(text.size() + 1), length));
        break;
      case 4: {
        const std::string& other = seeds[dice.below(seeds.size())];
        text.insert(at, other.substr(dice.below(other.size() + 1), 64));
        break;
      }
      case 5:
        text.resize(at);
        break;
    }
  }
  if (text.size() > kMostBytes)
    text.erase(0, dice.below(text.size() - kMostBytes + 1)).resize(std::min(text.size(), kMostBytes));
  return text;
}

void try_one(const std::string& text) {
  std::ofstream("fuzz-input", std::ios::binary) << text;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t runs = 1000, seed = 1;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("-runs=")) {
      runs = std::strtoull(word.c_str() + 6, nullptr, 10);
    } else if (word.starts_with("-seed=")) {
      seed = std::strtoull(word.c_str() + 6, nullptr, 10);
    } else if (word.starts_with("-")) {
      std::fprintf(stderr, "%s: unknown option %s (-runs=N, -seed=N, or build with the preset fuzz)\n", argv[0],
                   argv[i]);
      return 2;
    } else {
      paths.push_back(word);
    }
  }
  std::vector<std::string> seeds = read_seeds(paths);
  if (seeds.empty()) seeds.emplace_back();
  for (const std::string& text : seeds) try_one(text);
  for (std::uint64_t run = 0; run < runs; ++run) {
    Dice dice(seed, run);
    try_one(mutate(seeds[dice.below(seeds.size())], seeds, dice));
  }
  std::filesystem::remove("fuzz-input");
  std::printf("%zu seeds and %llu mutations of them passed\n", seeds.size(), static_cast<unsigned long long>(runs));
  return 0;
}
