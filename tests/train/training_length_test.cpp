#include "heed/train/training_length.h"

#include <doctest/doctest.h>

#include "heed/base/error.h"

using namespace heed;

TEST_CASE("amounts of training are read in every unit") {
  CHECK(TrainingLength("--after", "20e").unit() == TrainingLength::Unit::epochs);
  CHECK(TrainingLength("--after", "20e").count() == 20);
  CHECK(TrainingLength("--after", "0.5e").count() == 0.5);
  CHECK(TrainingLength("--after", "100Ku").count() == 1e5);
  CHECK(TrainingLength("--after", "100").unit() == TrainingLength::Unit::updates);
  CHECK(TrainingLength("--after", "1Gt").unit() == TrainingLength::Unit::tokens);
  CHECK(TrainingLength("--after", "1Gt").count() == 1e9);
  CHECK(TrainingLength("--after", "8h").unit() == TrainingLength::Unit::hours);
}

TEST_CASE("what is no amount is refused") {
  for (const char* text : {"", "e", "20x", "-1e", "0u", "nane", "1 e", "Ku"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(TrainingLength("--after", text),
                         (std::string("--after '") + text +
                          "': not an amount of training (a number with e for epochs, u updates, t target tokens or h "
                          "hours: 20e, 100Ku, 1Gt, 8h)")
                             .c_str(),
                         UsageError);
  }
}

TEST_CASE("a length that no training has is refused") {
  CHECK(TrainingLength("--after", "1000000Gu").count() == 1e15);
  for (const char* text : {"1e300u", "1000001Gt", "1e-300e", "1e-10h"})
    CHECK_THROWS_WITH_AS(TrainingLength("--after", text),
                         (std::string("--after '") + text + "': the number must be from 1e-9 to 1e15").c_str(),
                         UsageError);
}

TEST_CASE("a number of updates from every unit") {
  using Unit = TrainingLength::Unit;
  CHECK(TrainingLength(20, Unit::epochs).updates(15, 360, 0) == 300);
  CHECK(TrainingLength(70, Unit::updates).updates(15, 360, 0) == 70);
  CHECK(TrainingLength(7200, Unit::tokens).updates(15, 360, 0) == doctest::Approx(300));
  CHECK(TrainingLength(0.5, Unit::hours).updates(15, 360, 240) == doctest::Approx(18000));
}

TEST_CASE("reached, share and due look at the unit") {
  const TrainingLength epochs(2, TrainingLength::Unit::epochs), updates(10, TrainingLength::Unit::updates),
      hours(1, TrainingLength::Unit::hours);
  const TrainingProgress early{.epochs = 1.9, .updates = 19, .target_tokens = 5, .seconds = 3599};
  const TrainingProgress late{.epochs = 2, .updates = 20, .target_tokens = 9, .seconds = 3600};
  CHECK(!epochs.reached(early));
  CHECK(epochs.reached(late));
  CHECK(epochs.share(early) == doctest::Approx(0.95));
  CHECK(updates.share(late) == 1);
  CHECK(updates.due(early, late));
  CHECK(!updates.due({.updates = 11}, early));
  CHECK(hours.due(early, late));
}

TEST_CASE("no multiple of a part of an epoch is lost by rounding") {
  for (const int batches : {10, 20, 30}) {
    const TrainingLength part(1.0 / batches, TrainingLength::Unit::epochs);
    for (int i = 0; i < 3 * batches; ++i) {
      CAPTURE(i);
      const auto after = [&](int n) {
        return TrainingProgress{.epochs = n / batches + static_cast<double>(n % batches) / batches};
      };
      CHECK(part.due(after(i), after(i + 1)));
    }
  }
}
