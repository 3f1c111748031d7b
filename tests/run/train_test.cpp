#include "heed/run/train.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lessons.h"

using namespace heed;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the default warm-up is a tenth of the planned updates, whatever unit they are planned in") {
  const Lessons lessons;
  for (const std::string after : {"20e", "300u", "7200t"}) {
    CAPTURE(after);
    const auto plan = lessons.train({"--after", after, "--dry-run"});
    CAPTURE(plan.out);
    CHECK(contains(plan.out, "until                       " + after + ", about 300 updates\n"));
    CHECK(contains(plan.out, "learning rate               0.00217 at its peak, after 30 updates, then inverse-sqrt\n"));
    CHECK(!contains(plan.log, "warning"));
  }
  CHECK(
      contains(lessons.train({"--after", "20e", "--optimizer-delay", "2", "--dry-run"}).out, ", about 160 updates\n"));
  CHECK(contains(lessons.train({"--after", "1000h", "--dry-run"}).out, "after 4,000 updates, then inverse-sqrt\n"));
}

TEST_CASE("a training that is prolonged keeps its warm-up and its peak") {
  const Lessons given("heed_train_given"), kept("heed_train_kept");
  given.train({"--after", "8e", "--lr-warmup", "6", "--learn-rate", "0.0009682458365518542"});
  kept.train({"--after", "4e"});
  const auto plan = kept.train({"--after", "8e", "--dry-run"});
  CAPTURE(plan.out);
  CHECK(contains(plan.out, "after 6 updates, then inverse-sqrt\n"));
  const auto prolonged = kept.train({"--after", "8e"});
  CAPTURE(prolonged.log);
  CHECK(!contains(prolonged.log, "warning"));
  CHECK(kept.parameters() == given.parameters());
}

TEST_CASE("a rate that is given when training goes on is taken, with a warning") {
  const Lessons lessons;
  lessons.train({"--after", "4e"});
  const auto prolonged = lessons.train({"--after", "8e", "--learn-rate", "0.5", "--dry-run"});
  CHECK(contains(prolonged.log, "train: warning: --learn-rate was 0.0009682458365518542 and is now 0.5: the result"));
  CHECK(contains(prolonged.out, "0.5 at its peak, after 6 updates"));
}

TEST_CASE("a training from before rates were stored goes on with the defaults of then") {
  const Lessons given("heed_train_given"), old("heed_train_old");
  given.train({"--after", "4e", "--lr-warmup", "4000", "--learn-rate", "0.003952847075210474"});
  auto saved = given.state();
  for (auto& [name, value] : saved.state.settings)
    if (name == "--lr-warmup" || name == "--learn-rate") value = "not set";
  save_checkpoint(old.model, saved.checkpoint, saved.state, saved.arrays);
  given.train({"--after", "8e"});
  const auto prolonged = old.train({"--after", "8e"});
  CHECK(!contains(prolonged.log, "--learn-rate was"));
  CHECK(!contains(prolonged.log, "--lr-warmup was"));
  CHECK(old.parameters() == given.parameters());
}

TEST_CASE("a stored rate that is no number is an error that names the file") {
  const Lessons lessons;
  lessons.train({"--after", "1e"});
  auto saved = lessons.state();
  for (auto& [name, value] : saved.state.settings)
    if (name == "--lr-warmup") value = "soon";
  save_checkpoint(lessons.model, saved.checkpoint, saved.state, saved.arrays);
  CHECK_THROWS_WITH_AS(lessons.train({"--after", "2e"}),
                       doctest::Contains((lessons.model + ": /training/state: --lr-warmup 'soon'").c_str()), Error);
}

TEST_CASE("a warm-up longer than a third of the training is warned of, with numbers") {
  const Lessons lessons;
  const std::string longer =
      "train: warning: the learning rate rises for 4,000 updates (--lr-warmup), but training ends after about 300, "
      "at a rate of 0.000296 of 0.00395 (give --lr-warmup 30 or less, or train longer with --after)\n";
  const std::string third =
      "train: warning: the learning rate rises for 101 updates (--lr-warmup), but training has about 300 in "
      "all (give --lr-warmup 30 or less, or train longer with --after)\n";
  for (const std::string mode : {"--check", "--dry-run"}) {
    CAPTURE(mode);
    CHECK(contains(lessons.train({"--after", "20e", "--lr-warmup", "4000", mode}).log, longer));
    CHECK(contains(lessons.train({"--after", "20e", "--lr-warmup", "101", mode}).log, third));
    CHECK(!contains(lessons.train({"--after", "20e", "--lr-warmup", "100", mode}).log, "warning"));
  }
  const std::string log = lessons.train({"--after", "20e", "--lr-warmup", "101"}).log;
  CAPTURE(log);
  CHECK(contains(log, third));
}

TEST_CASE("a training of few updates is advised to have no warm-up") {
  const Lessons lessons;
  CHECK(contains(lessons.train({"--after", "3u", "--lr-warmup", "2", "--dry-run"}).log,
                 "(give --lr-warmup 0, or train longer with --after)\n"));
}

TEST_CASE("updates end with their window, and the plan of a training knows it") {
  const Lessons lessons("heed_train_windows", 2500);
  const Words options = {"--after", "2e", "--shuffle-window", "1000", "--optimizer-delay", "100", "--lr-warmup", "0"};
  Words plan = options;
  plan.emplace_back("--dry-run");
  // Two windows of 1,024 pairs have 128 batches each, and one of 452 has 57.
  CHECK(contains(lessons.train(plan).out, "until                       2e, about 10 updates\n"));
  lessons.train(options);
  CHECK(lessons.state().state.updates == 10);
}

TEST_CASE("--check takes its percentages of the pairs that it has looked at") {
  const Lessons lessons("heed_train_check", 3072);  // 64 different pairs
  const std::string report = lessons.train({"--check", "--shuffle-window", "1000", "--lr-warmup", "0"}).out;
  CAPTURE(report);
  CHECK(contains(report, "pairs examined              1,024, one window of --shuffle-window\n"));
  CHECK(contains(report, "duplicates                  960 (93.75 %), the first in line "));
}

TEST_CASE("a picture has a name that says what it is") {
  const Lessons lessons;
  CHECK_THROWS_WITH_AS(lessons.train({"--plot", "curve.jpg"}),
                       "--plot curve.jpg: the name of a picture ends in .svg or .png", UsageError);
}

TEST_CASE("--check and --dry-run show the plan alike") {
  const Lessons lessons;
  const std::string line = "  learning rate               0.00217 at its peak, after 30 updates, then inverse-sqrt\n";
  CHECK(contains(lessons.train({"--after", "20e", "--check"}).out, line));
  CHECK(contains(lessons.train({"--after", "20e", "--dry-run"}).out, line));
}
