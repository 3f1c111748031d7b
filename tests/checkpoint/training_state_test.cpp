#include "heed/checkpoint/training_state.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/error.h"

using namespace heed;

namespace {

/// A dataset /training/state of version 0, which lacks the number of batches of an epoch. heed 0.1 wrote the state with
/// `train ... --mini-batch-words 500 --after 8u --save-freq 4u --valid-freq 4u --keep-last 2`; h5dump extracted the
/// text.
const std::string kVersion0 =
    "22 serialization::archive 18 0 0 1 8 8 4 0 2484 400 1.03418607999999995e-01 1 21 --after 8u is reached "
    "0 0 0 0 0 8 0 0 0 1 5.00000000000000000e-01 5.02634983701976790e+00 125 2 1.00000000000000000e+00 "
    "5.00283505476882961e+00 496 3 1.50000000000000000e+00 5.00502058779811598e+00 123 4 "
    "2.00000000000000000e+00 4.99237940180496853e+00 498 5 2.50000000000000000e+00 4.99395068105324658e+00 "
    "495 6 3.00000000000000000e+00 5.01047188519659148e+00 126 7 3.50000000000000000e+00 "
    "4.98707622119386063e+00 497 8 4.00000000000000000e+00 5.03795004076496244e+00 124 1 0 "
    "0.00000000000000000e+00 0.00000000000000000e+00 0 0 0 2 0 10 perplexity 4 bleu 0 0 2 0 0 0 4 "
    "2.00000000000000000e+00 2 0 1.66642699093902507e+02 0.00000000000000000e+00 8 4.00000000000000000e+00 2 "
    "0 1.66617749272719749e+02 0.00000000000000000e+00 0 0 2 0 0 0 1.66617749272719749e+02 8 0 "
    "0.00000000000000000e+00 4 1 2 0 4 8 0 0 18 0 0 0 31 the training text's fingerprint 16 90a4d1d2906d878f "
    "9 --threads 1 2 13 the precision 8 bfloat16 12 --mini-batch 7 not set 18 --mini-batch-words 3 500 17 "
    "--optimizer-delay 1 1 12 --max-length 3 256 9 --on-long 4 skip 17 --label-smoothing 3 0.1 23 "
    "--exponential-smoothing 1 0 6 --seed 1 1 11 --optimizer 4 adam 18 --optimizer-params 7 not set 12 "
    "--learn-rate 7 not set 11 --lr-warmup 7 not set 13 --lr-schedule 12 inverse-sqrt 11 --clip-norm 1 1 14 "
    "--weight-decay 1 0\n";

/// Returns a state whose numbers are all different, so that a test can replace one number in the archive's text.
TrainingState example() {
  TrainingState state;
  state.seed = 101;
  state.updates = 4000;
  state.optimizer_step = 3990;
  state.epoch = 104;
  state.batch = 105;
  state.window_batches = 106;
  state.target_tokens = 107000;
  state.sentences = 10800;
  state.seconds = 109.5;
  state.finished = true;
  state.finish_reason = "a reason";
  state.skipped_updates = 10;
  state.consecutive_skips = 3;
  state.rollbacks = 112;
  state.history = {{113, 1.125, 5.5, 114}, {226, 2.25, 4.5, 115}};
  state.history_stride = 116;
  state.open_point = {117, 2.75, 118.25, 119};
  state.metrics = {"perplexity", "bleu"};
  state.validations = {{120, 121.5, {122.5, 123.5}}, {124, 125.5, {126.5, 127.5}}};
  state.best = {{126.5, 5128, 129}, {127.5, -1, 130}};
  state.kept_updates = {131, 132, 3990};
  state.requested_updates = {132, 3990};
  state.averaged_models = 133;
  state.validation_due = true;
  state.settings = {{"--seed", "101"}, {"a text", "with spaces, and 1 000 000 numbers"}};
  return state;
}

std::string state_message(const std::string& bytes) {
  try {
    read_training_state(bytes, "m.h5");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from << " is not in " << text);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("training state: what is written is read") {
  const TrainingState state = example(), read = read_training_state(write_training_state(state), "m.h5");
  CHECK(write_training_state(read) == write_training_state(state));
  CHECK(read.window_batches == 106);
  CHECK(read.validations.at(1).scores == std::vector<double>{126.5, 127.5});
  CHECK(read.best.at(0).update == 5128);
  CHECK(read.settings == state.settings);
  CHECK(read.requested_updates == state.requested_updates);
  CHECK(read.averaged_models == 133);
  CHECK(read.validation_due);
}

TEST_CASE("training state: version 0 is read, and does not say how many batches an epoch has") {
  const TrainingState state = read_training_state(kVersion0, "m.h5");
  CHECK(state.updates == 8);
  CHECK(state.epoch == 4);
  CHECK(state.window_batches == 0);
  CHECK(state.target_tokens == 2484);
  CHECK(state.finish_reason == "--after 8u is reached");
  CHECK(state.history.at(7).tokens == 124);
  CHECK(state.validations.at(1).scores == std::vector<double>{1.66617749272719749e+02, 0});
  CHECK(state.best.at(1).stalled == 1);
  CHECK(state.kept_updates == std::vector<std::int64_t>{4, 8});
  CHECK(state.requested_updates == state.kept_updates);  // rather than files being removed that the user wants
  CHECK(state.averaged_models == 0);
  CHECK(!state.validation_due);
  CHECK(state.settings.size() == 18);
  CHECK(state.settings.back() == std::pair<std::string, std::string>{"--weight-decay", "0"});
  CHECK(state_message(write_training_state(state)) == "no error");
}

TEST_CASE("training state: no field is believed") {
  const std::string bytes = write_training_state(example());
  const std::string advice =
      " (the file is damaged or forged; take a copy of it from before, or begin again under another name with -m)";
  struct Forgery {
    std::string from, to, what;
  };
  const std::string most = std::to_string(std::int64_t{1} << 53);
  for (const auto& [from, to, what] : std::vector<Forgery>{
           {" 4000 ", " -1 ", "updates is -1, not 0 to " + most},
           {" 4000 ", " 9223372036854775807 ", "updates is 9223372036854775807, not 0 to " + most},
           {" 3990 ", " 4001 ", "optimizer_step is 4001, not 0 to 4000"},
           {" 104 ", " -104 ", "epoch is -104, not 0 to " + most},
           {" 105 ", " -105 ", "batch is -105, not 0 to 106"},
           {" 105 ", " 107 ", "batch is 107, not 0 to 106"},
           {" 106", " -106", "window_batches is -106, not 0 to " + most},
           {" 107000 ", " -5 ", "target_tokens is -5, not 0 to " + most},
           {" 10800 ", " -5 ", "sentences is -5, not 0 to " + most},
           {" 1.09500000000000000e+02 ", " -1 ", "seconds is negative"},
           {" 10 3 112 ", " -1 3 112 ", "skipped_updates is -1, not 0 to " + most},
           {" 10 3 112 ", " 10 11 112 ", "consecutive_skips is 11, not 0 to 10"},
           {" 10 3 112 ", " 10 3 -112 ", "rollbacks is -112, not 0 to " + most},
           {" 113 ", " 4001 ", "history 1: update is 4001, not 0 to 4000"},
           {" 115 ", " 0 ", "history 2: tokens is 0, not 1 to " + most},
           {" 1.12500000000000000e+00 ", " -1 ", "history 1: epoch is negative"},
           {" 116 ", " 0 ", "history_stride is 0, not 1 to " + most},
           {" 117 ", " -2 ", "open_point: update is -2, not 0 to 4000"},
           {" 119 ", " -2 ", "open_point: tokens is -2, not 0 to " + most},
           {" 2 0 10 perplexity 4 bleu ", " 1 0 10 perplexity ", "validation 1 has 2 scores for 1 metrics"},
           {" 2 0 10 perplexity 4 bleu ", " 3 0 10 perplexity 4 bleu 1 x ", "validation 1 has 2 scores for 3 metrics"},
           {" 120 ", " 4001 ", "validation 1: update is 4001, not 0 to 4000"},
           {" 1.25500000000000000e+02 ", " -1 ", "validation 2: epoch is negative"},
           {" 1.26500000000000000e+02 ", " -1 ", "validation 2: score is negative"},
           {" 129 1.27500000000000000e+02 -1 130 ", " 129 -2 -1 130 ", "best 2: score is negative"},
           {" 5128 ", " -2 ", "best 1: update is -2, not -1 to " + most},
           {" 129 ", " -3 ", "best 1: stalled is -3, not 0 to " + most},
           {" 3 0 131 132 3990 ", " 3 0 132 132 3990 ", "kept_updates 2 is 132, not 133 to 4000"},
           {" 3 0 131 132 3990 ", " 3 0 131 132 4001 ", "kept_updates 3 is 4001, not 133 to 4000"},
           {" 3 0 131 132 3990 ", " 3 0 -1 132 3990 ", "kept_updates 1 is -1, not 0 to 4000"},
           {" 2 0 132 3990 133 ", " 2 0 133 3990 133 ", "requested_updates 1 is 133, which is not among kept_updates"},
           {" 2 0 132 3990 133 ", " 2 0 132 132 133 ", "requested_updates 2 is 132, not 133 to 4000"},
           {" 2 0 132 3990 133 ", " 2 0 132 3990 -1 ", "averaged_models is -1, not 0 to " + most}}) {
    CAPTURE(from);
    CHECK(state_message(replaced(bytes, from, to)) == "m.h5: /training/state: " + what + advice);
  }
  // A state must have one best score for each metric. Here the list `best` has one element for two metrics.
  TrainingState state = example();
  state.best.pop_back();
  CHECK_THROWS_WITH_AS(write_training_state(state),
                       "internal: the state of training cannot be saved: best has 1 scores for 2 metrics", Error);
  const std::string both = " 129 1.27500000000000000e+02 -1 130 3 ";
  const std::string last_two = " 2 0 0 0 1.26500000000000000e+02 5128";
  const std::string one_best =
      replaced(replaced(bytes, both, " 129 3 "), last_two, " 1 0 0 0 1.26500000000000000e+02 5128");
  CHECK(state_message(one_best) == "m.h5: /training/state: best has 1 scores for 2 metrics" + advice);
}

TEST_CASE("training state: bytes that are no archive, numbers that are none, lengths that are impossible") {
  const std::string bytes = write_training_state(example());
  const auto unreadable = [&](const std::string& forged) {
    CAPTURE(forged);
    CHECK(state_message(forged).starts_with("m.h5: /training/state: cannot be read: "));
  };
  unreadable("");
  unreadable("hello");
  unreadable(bytes.substr(0, bytes.size() / 2));
  for (const std::string number : {"nan", "inf", "-inf", "1e999", "x", "--1", "99999999999999999999"})
    unreadable(replaced(bytes, " 107000 ", " " + number + " "));
  for (const std::string number : {"nan", "inf", "1e999", "x"})
    unreadable(replaced(bytes, " 1.12500000000000000e+00 ", " " + number + " "));
  for (const std::string size :
       {"99999999999", "1000000000000000", "9223372036854775807", "18446744073709551615", "-1"}) {
    unreadable(replaced(bytes, " 2 0 10 perplexity ", " " + size + " 0 10 perplexity "));
    unreadable(replaced(bytes, " 10 perplexity ", " " + size + " perplexity "));
    unreadable(replaced(bytes, " 8 a reason ", " " + size + " a reason "));
    unreadable(replaced(bytes, " 3 0 131 132 3990 ", " " + size + " 0 131 132 3990 "));
    unreadable(
        replaced(bytes, " 2 0 0 0 1.26500000000000000e+02 5128", " " + size + " 0 0 0 1.26500000000000000e+02 5128"));
  }
  CHECK(state_message("22 serialization::archive 9999" + bytes.substr(bytes.find(" 0 "))) ==
        "m.h5: /training/state: was written by a later heed, or with a later Boost library (go on with that one)");
}

TEST_CASE("training state: whatever the bytes are, they give a state without flaw or an Error") {
  const std::string good = write_training_state(example());
  std::uint64_t random = 1;
  const auto next = [&](std::size_t below) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>((random >> 33) % below);
  };
  const std::string alphabet = "0123456789 -.e";
  int read = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = good;
    for (std::size_t changes = 1 + next(3); changes > 0; --changes) {
      const std::size_t at = next(bytes.size());
      if (next(2) == 0)
        bytes[at] = alphabet[next(alphabet.size())];
      else if (next(2) == 0)
        bytes.insert(at, 1, alphabet[next(alphabet.size())]);
      else
        bytes.erase(at, 1);
    }
    CAPTURE(bytes);
    try {
      const TrainingState state = read_training_state(bytes, "m.h5");
      CHECK_NOTHROW(write_training_state(state));
      ++read;
    } catch (const Error&) {
    }
  }
  CHECK(read > 100);
  CHECK(read < 4900);
}

TEST_CASE("training state: no number is written that cannot be read") {
  for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const auto refused = [&](auto spoil, const std::string& what) {
      TrainingState state = example();
      spoil(state);
      CHECK_THROWS_WITH_AS(write_training_state(state),
                           ("internal: the state of training cannot be saved: " + what).c_str(), Error);
    };
    refused([&](TrainingState& state) { state.history[1].loss = wrong; }, "history 2: loss is not a finite number");
    refused([&](TrainingState& state) { state.open_point.loss = wrong; }, "open_point: loss is not a finite number");
    refused([&](TrainingState& state) { state.validations[0].scores[1] = wrong; },
            "validation 1: score is not a finite number");
    refused([&](TrainingState& state) { state.best[0].score = wrong; }, "best 1: score is not a finite number");
    refused([&](TrainingState& state) { state.seconds = wrong; }, "seconds is not a finite number");
  }
}
