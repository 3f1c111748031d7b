#include "heed/data/training_corpus.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "../dist/thread_ranks.h"

using namespace heed;

namespace {

const std::string kFolder = std::filesystem::temp_directory_path().string();

/// Returns pair i of a text: its ids are a function of i.
void add_pair(ParallelCorpus& corpus, int i) {
  const std::vector<std::int32_t> source(static_cast<std::size_t>(1 + i % 5), 4 + i);
  const std::vector<std::int32_t> target(static_cast<std::size_t>(1 + i % 3), 4 + i);
  corpus.add(source, target, i + 1);
  const PieceLink links[] = {{0, 0}, {i % 5, i % 3}};
  corpus.add_links(links);
}

/// Adds 20 blocks with 10 pairs each, the last one with 3, as rank `ranks.rank()` does, and two rounds of empty blocks.
void fill(TrainingCorpus& corpus, Communicator& ranks) {
  for (int block = 0; block < 20 + 2 * ranks.size(); block += ranks.size()) {
    ParallelCorpus own;
    const int number = block + ranks.rank();
    for (int i = 10 * number; i < std::min(10 * number + 10, 193); ++i) add_pair(own, i);
    corpus.add({own});
  }
  corpus.finish();
}

std::vector<std::int64_t> lines(const ParallelCorpus& corpus) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < corpus.size(); ++i) out.push_back(corpus.line(i));
  return out;
}

}  // namespace

TEST_CASE("corpora that are put together are the corpus that was written at once") {
  ParallelCorpus whole, parts, part;
  for (int i = 0; i < 30; ++i) add_pair(whole, i);
  for (int i = 0; i < 30; ++i) {
    add_pair(part, i);
    if (i % 11 != 10 && i != 29) continue;
    parts.append(part.bytes());
    part.clear();
  }
  parts.append(part.bytes());  // an empty one
  CHECK(parts.fingerprint() == whole.fingerprint());
  CHECK(parts.bytes() == whole.bytes());
  CHECK(lines(parts) == lines(whole));
  CHECK_THROWS_WITH(parts.append(whole.bytes().substr(0, 300)), "internal: a block of sentence pairs is too short");
}

TEST_CASE("the windows of an epoch have each pair once, in another order in each epoch") {
  TrainingCorpus corpus(no_other_ranks(), ShuffleWindow{.pairs = 60, .folder = kFolder, .seed = 3});
  fill(corpus, no_other_ranks());
  CHECK(corpus.pairs() == 193);
  REQUIRE(corpus.windows() == 4);
  std::set<std::vector<std::int64_t>> first_windows;
  for (const std::int64_t epoch : {0, 1, 5}) {
    std::multiset<std::int64_t> all;
    std::int64_t tokens = 0;
    const std::vector<WindowSize> sizes = corpus.sizes_of_windows(epoch);
    REQUIRE(sizes.size() == 4);
    for (std::int64_t w = 0; w < corpus.windows(); ++w) {
      const ParallelCorpus& window = corpus.load(epoch, w);
      const std::vector<std::int64_t> here = lines(window);
      CHECK(std::ranges::is_sorted(here));
      CHECK((here.size() >= 43 && here.size() <= 50));
      CHECK(sizes[static_cast<std::size_t>(w)].pairs == window.size());
      CHECK(sizes[static_cast<std::size_t>(w)].target_tokens == window.target_tokens());
      all.insert(here.begin(), here.end());
      tokens += window.target_tokens();
      if (w == 0) first_windows.insert(here);
      for (std::int64_t i = 0; i < window.size(); ++i) {
        CHECK(window.source(i)[0] == 3 + window.line(i));
        CHECK(std::ssize(window.target(i)) == 1 + (window.line(i) - 1) % 3);
      }
    }
    CHECK(all.size() == 193);
    CHECK(std::set(all.begin(), all.end()).size() == 193);
    CHECK(tokens == corpus.target_tokens());
  }
  CHECK(first_windows.size() == 3);
}

TEST_CASE("no window is empty, also where windows have fewer pairs than blocks") {
  for (const std::int64_t pairs : {1, 9, 10}) {
    TrainingCorpus corpus(no_other_ranks(), ShuffleWindow{.pairs = pairs, .folder = kFolder, .seed = 3});
    fill(corpus, no_other_ranks());
    REQUIRE(corpus.windows() == 20);
    for (std::int64_t w = 0; w < corpus.windows(); ++w) CHECK(corpus.load(1, w).size() > 0);
  }
}

TEST_CASE("a window that holds all pairs is the corpus in memory") {
  TrainingCorpus memory(no_other_ranks()),
      disk(no_other_ranks(), ShuffleWindow{.pairs = 193, .folder = kFolder, .seed = 3});
  fill(memory, no_other_ranks());
  fill(disk, no_other_ranks());
  CHECK(disk.windows() == 1);
  REQUIRE(disk.sizes_of_windows(3).size() == 1);
  CHECK(disk.sizes_of_windows(3)[0].pairs == 193);
  CHECK(disk.sizes_of_windows(3)[0].target_tokens == memory.target_tokens());
  CHECK(disk.load(7, 0).bytes() == memory.load(7, 0).bytes());
}

TEST_CASE("ranks have the windows, the fingerprint and the counts of one process") {
  const auto describe = [](Communicator& ranks, bool on_disk) {
    TrainingCorpus corpus(
        ranks, on_disk ? std::optional(ShuffleWindow{.pairs = 60, .folder = kFolder, .seed = 3}) : std::nullopt);
    fill(corpus, ranks);
    std::string out = std::to_string(corpus.fingerprint()) + " " + std::to_string(corpus.pairs()) + " " +
                      std::to_string(corpus.target_tokens());
    for (std::int64_t w = corpus.windows() - 1; w >= 0; --w) out += corpus.load(2, w).bytes();
    return out;
  };
  for (const bool on_disk : {false, true}) {
    const std::string expected = describe(no_other_ranks(), on_disk);
    for (const int size : {2, 4, 5}) {
      std::vector<std::string> got(static_cast<std::size_t>(size));
      run_ranks(size,
                [&](Communicator& ranks) { got[static_cast<std::size_t>(ranks.rank())] = describe(ranks, on_disk); });
      for (const std::string& each : got) CHECK(each == expected);
    }
  }
}

TEST_CASE("a folder that cannot be written is an error") {
  CHECK_THROWS_WITH(TrainingCorpus(no_other_ranks(), ShuffleWindow{.pairs = 9, .folder = "/no/such", .seed = 1}),
                    "/no/such: cannot create a temporary file: No such file or directory (name another folder with "
                    "--tempdir)");
}
