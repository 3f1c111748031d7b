#include "heed/train/trainer.h"

#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>

#include "../dist/thread_ranks.h"
#include "heed/train/learning_curve.h"
#include "heed/train/model_files.h"
#include "heed/train/resume.h"
#include "small_run.h"

using namespace heed;

namespace {

/// Returns the model's loss with a hook: the loss calls `spoil` for each training batch. `spoil` may throw or raise a
/// signal; when `spoil` returns true, the loss becomes NaN.
BatchLoss hooked(const ResumableCheckpoint& run, std::function<bool()> spoil) {
  const auto model = run.checkpoint.model;
  return [model, spoil = std::move(spoil)](Graph<float>& graph, const Batch& batch, const LossOptions& options,
                                           PendingSums* sums) {
    const Variable<float> loss = model->loss(graph, batch, options, sums);
    if (graph.recording() && spoil()) sums->entropy.loss = NAN;
    return loss;
  };
}

/// Returns a loss that raises SIGTERM when training computes a batch for the time `batch`, counted from 1.
BatchLoss interrupted_at(const ResumableCheckpoint& run, int batch) {
  return hooked(run, [batch, calls = std::make_shared<std::atomic<int>>(0)] {
    if (++*calls == batch) std::raise(SIGTERM);
    return false;
  });
}

}  // namespace

TEST_CASE("training learns, validates, saves and says so") {
  const TemporaryFolder folder("heed_trainer_learns");
  SmallRun run(folder / "m.h5");
  run.run.after = "30e";
  run.run.disp_freq = "10e";
  CHECK(run.go() == Trainer::Outcome::finished);
  const TrainingState& state = run.state->state;
  CHECK(state.finished);
  CHECK(state.epoch == 30);
  REQUIRE(state.validations.size() == 30);
  CHECK(state.validations.back().scores[0] < 0.5 * state.validations.front().scores[0]);
  CHECK(state.best[0].score <= state.validations.back().scores[0]);
  CHECK(state.target_tokens == 30 * run.corpus.target_tokens());
  CHECK(state.sentences == 30 * run.corpus.size());
  CHECK(run.messages.str().find("epoch 10.00  update ") != std::string::npos);
  CHECK(run.messages.str().find("finished: --after 30e is reached") != std::string::npos);
  CHECK(saved_parameters(run.path) == run.parameters());
}

TEST_CASE("interrupted anywhere and started again, it ends with the same bits") {
  for (const auto& [full, normalization] :
       {std::pair(false, Normalization::layer), {true, Normalization::layer}, {true, Normalization::batch}}) {
    const TemporaryFolder folder("heed_trainer_resume");
    const auto settings = [full = full, normalization = normalization](SmallRun& run) {
      run.run.after = "4e";
      run.config.normalization = normalization;
      if (!full) return;
      run.batch.exponential_smoothing = 0.01;
      run.batch.optimizer_delay = 3;
      run.optimizer.optimizer = OptimizerKind::adamw;
      run.optimizer.lr_schedule = ScheduleKind::cosine;
      run.optimizer.lr_warmup = 5;
      run.run.save_freq = "7u";
      run.run.average_last = 2;
      run.run.keep_best = true;
    };
    SmallRun whole(folder / "whole.h5"), cut(folder / "cut.h5");
    settings(whole);
    settings(cut);
    CHECK(whole.go() == Trainer::Outcome::finished);

    int starts = 0;
    for (; starts < 100; ++starts) {
      cut.prepare();
      // The signal arrives in the middle of an update. With --optimizer-delay, two threads compute an update's loss.
      if (cut.go(interrupted_at(*cut.state, 3 + starts * 2)) == Trainer::Outcome::finished) break;
    }
    CHECK(starts > 2);
    CHECK(saved_parameters(cut.path) == saved_parameters(whole.path));
    CHECK(cut.state->state.validations.size() == whole.state->state.validations.size());
    for (std::size_t i = 0; i < whole.state->state.validations.size(); ++i)
      CHECK(cut.state->state.validations[i].scores == whole.state->state.validations[i].scores);
    CHECK(cut.state->state.history.size() == whole.state->state.history.size());
  }
}

TEST_CASE("a signal ends a validation early, and the resumed training does this validation") {
  for (const int size : {1, 2}) {
    CAPTURE(size);
    const TemporaryFolder folder("heed_trainer_validation_cut");
    // Trains, with `cut` until the first validation after an update of this run, or until the first validation of the
    // average. Returns whether the training has finished.
    std::atomic<bool> average_cut = false;
    const auto go = [&](const std::string& name, bool cut) {
      const InterruptGuard interrupts;
      std::atomic<int> finished = 0;
      const auto train = [&](Communicator& ranks) {
        SmallRun run(folder / (name + ".h5"), size == 1 ? 2 : 1);
        run.ranks = &ranks;
        run.held_out = mirrored(1000);  // several parts
        run.run.after = "2e";
        run.run.valid_freq = "5u";
        run.run.save_freq = "5u";
        run.run.average_last = 2;
        run.run.keep_best = true;
        run.run.early_stopping = 50;
        run.batch.exponential_smoothing = 0.01;
        run.prepare();
        const auto model = run.state->checkpoint.model;
        const std::int64_t at = run.state->state.updates;
        std::atomic<bool> raised = false;
        const BatchLoss loss = [&, model](Graph<float>& graph, const Batch& batch, const LossOptions& options,
                                          PendingSums* sums) {
          const TrainingState& state = run.state->state;
          const bool here = state.updates > at || (state.finished && !average_cut);
          if (cut && here && !graph.recording() && ranks.rank() == size - 1 && !raised.exchange(true)) {
            if (state.finished) average_cut = true;
            std::raise(SIGTERM);
          }
          return model->loss(graph, batch, options, sums);
        };
        if (run.prepare(loss).run(interrupts) == Trainer::Outcome::finished) ++finished;
        return run.parameters();
      };
      if (size == 1)
        train(no_other_ranks());
      else
        run_ranks(size, train);
      CHECK((finished == 0 || finished == size));
      return finished == size;
    };
    CHECK(go("whole", false));
    int due = 0, starts = 1;
    const std::string path = folder / "cut.h5";
    for (; starts < 100 && !go("cut", true); ++starts) due += load_resumable_checkpoint(path)->state.validation_due;
    const TrainingState whole = load_resumable_checkpoint(folder / "whole.h5")->state,
                        cut = load_resumable_checkpoint(path)->state;
    CHECK(saved_parameters(path) == saved_parameters(folder / "whole.h5"));
    CHECK(saved_parameters(folder / "cut.best-perplexity.h5") == saved_parameters(folder / "whole.best-perplexity.h5"));
    CHECK(folder.files() ==
          std::vector<std::string>{"cut.best-perplexity.h5", "cut.h5", "whole.best-perplexity.h5", "whole.h5"});
    CHECK(cut.best[0].update == whole.best[0].update);
    CHECK(cut.best[0].stalled == whole.best[0].stalled);
    CHECK(!cut.validation_due);
    REQUIRE(cut.validations.size() == whole.validations.size());
    CHECK(due == std::ssize(whole.validations));
    CHECK(starts == due + 2);  // the last but one ended within the validation of the average
    for (std::size_t i = 0; i < whole.validations.size(); ++i) {
      CHECK(cut.validations[i].update == whole.validations[i].update);
      CHECK(cut.validations[i].scores == whole.validations[i].scores);
    }
  }
}

TEST_CASE("a run that is killed goes on from the last save and ends with the same bits") {
  const TemporaryFolder folder("heed_trainer_killed");
  SmallRun whole(folder / "whole.h5"), cut(folder / "cut.h5");
  for (SmallRun* run : {&whole, &cut}) {
    run->run.save_freq = "5u";
    run->run.keep_last = 2;
  }
  whole.go();
  for (int starts = 0; starts < 3; ++starts) {
    cut.prepare();
    int calls = 0;
    CHECK_THROWS_WITH_AS(cut.go(hooked(*cut.state,
                                       [&]() -> bool {
                                         if (++calls == 13) throw Error("killed");
                                         return false;
                                       })),
                         "killed", Error);
  }
  CHECK(cut.go() == Trainer::Outcome::finished);
  CHECK(saved_parameters(cut.path) == saved_parameters(whole.path));
  CHECK(cut.state->state.kept_updates == whole.state->state.kept_updates);
  CHECK(folder.files().size() == 6);  // each of the two trainings has its model and two kept models
}

TEST_CASE("what is finished stays so; a longer goal opens it again, as if there had been no stop") {
  const TemporaryFolder folder("heed_trainer_finished");
  SmallRun run(folder / "m.h5"), whole(folder / "w.h5");
  run.go();
  const auto parameters = run.parameters();
  CHECK(run.prepare().already_finished());
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(run.parameters() == parameters);
  run.run.after = whole.run.after = "5e";
  CHECK(!run.prepare().already_finished());
  run.go();
  whole.go();
  CHECK(run.parameters() == whole.parameters());
}

TEST_CASE("an interrupted training that has nothing left to learn is finished, with all that belongs to an end") {
  const TemporaryFolder folder("heed_trainer_overtaken");
  for (const bool stalled : {false, true}) {
    CAPTURE(stalled);
    SmallRun run(folder / "m.h5");
    run.run.save_freq = "5u";
    run.run.average_last = 2;
    run.run.valid_freq = "3u";
    if (stalled) run.optimizer.learn_rate = 0;  // the model never improves
    run.prepare();
    CHECK(run.go(interrupted_at(*run.state, 17)) == Trainer::Outcome::interrupted);
    CHECK(folder.files() == std::vector<std::string>{"m.h5", "m.update-10.h5", "m.update-15.h5"});
    const std::int64_t done = run.state->state.updates;
    CHECK(done >= 16);
    const auto mean = [&] {
      const auto a = saved_parameters(kept_model_file(run.path, 15)), b = run.parameters();
      std::vector<float> out;
      for (std::size_t i = 0; i < a.size(); ++i)
        out.push_back(static_cast<float>((static_cast<double>(a[i]) + static_cast<double>(b[i])) / 2));
      return out;
    }();
    if (stalled)
      run.run.early_stopping = 3;
    else
      run.run.after = "12u";
    run.messages.str("");
    // The tool asks first, in order to say that a training goes on, and then trains.
    CHECK(!run.prepare().already_finished());
    CHECK(!run.trainer->already_finished());
    const InterruptGuard interrupts;
    CHECK(run.trainer->run(interrupts) == Trainer::Outcome::finished);
    CHECK(run.state->state.updates == done);
    CHECK(run.state->state.validations.back().update == done);
    CHECK(run.messages.str().find(stalled ? "finished: no better perplexity in 3 validations"
                                          : "finished: --after 12u is reached") != std::string::npos);
    CHECK(run.messages.str().find("the average of the last 2 saved models") != std::string::npos);
    CHECK(saved_parameters(run.path) == mean);
    CHECK(folder.files() == std::vector<std::string>{"m.h5"});
    CHECK(run.prepare().already_finished());
    std::filesystem::remove(run.path);
  }
}

TEST_CASE("a prolonged training averages what it saves anew, because an average takes the place of the kept models") {
  const TemporaryFolder folder("heed_trainer_average_again");
  SmallRun run(folder / "m.h5");
  run.run.save_freq = "1e";
  run.run.average_last = 3;
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(folder.files() == std::vector<std::string>{"m.h5"});
  run.run.after = "4e";
  run.prepare();
  int calls = 0;
  CHECK(run.go(hooked(*run.state, [&] { return ++calls <= 3; })) == Trainer::Outcome::finished);
  CHECK(run.state->state.rollbacks == 1);
  CHECK(run.messages.str().find("is missing") == std::string::npos);
  CHECK(run.messages.str().find("the average of the last 1 saved model\n") != std::string::npos);
  CHECK(saved_parameters(run.path) == run.parameters());
  run.run.after = "6e";
  run.run.keep_last = 5;
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(run.messages.str().find("the average of the last 2 saved models\n") != std::string::npos);
  CHECK(folder.files().size() == 3);

  // A file that is missing without an average is worth a warning.
  const std::string missing = kept_model_file(run.path, run.state->state.kept_updates[0]);
  run.run.after = "8e";
  run.run.save_freq = "4u";
  run.prepare();
  CHECK(run.go(interrupted_at(*run.state, 6)) == Trainer::Outcome::interrupted);
  std::filesystem::remove(missing);
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(run.messages.str().find("train: warning: " + missing +
                                ": is missing; the average of --average-last leaves it out\n") != std::string::npos);
}

TEST_CASE("models that --keep-last has kept stay without the option, and can be averaged afterwards") {
  const TemporaryFolder folder("heed_trainer_kept");
  SmallRun run(folder / "m.h5");
  run.run.keep_last = 3;
  run.run.save_freq = "1e";
  run.go();
  const std::vector<std::int64_t> kept = run.state->state.kept_updates;
  REQUIRE(kept.size() == 3);
  const std::vector<std::string> files = folder.files();
  CHECK(files.size() == 4);
  const auto trained = saved_parameters(run.path);

  // Neither a finished training nor a longer one removes them without --keep-last.
  run.run.keep_last = 0;
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(folder.files() == files);
  CHECK(saved_parameters(run.path) == trained);

  // The finished training makes the average that it lacks, once. A signal during the validation of the average saves
  // the training without it.
  run.run.average_last = 3;
  run.prepare();
  const auto model = run.state->checkpoint.model;
  CHECK(run.go([model](Graph<float>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums) {
    std::raise(SIGTERM);
    return model->loss(graph, batch, options, sums);
  }) == Trainer::Outcome::interrupted);
  CHECK(saved_parameters(run.path) == trained);
  CHECK(run.go() == Trainer::Outcome::finished);
  std::vector<double> sum(trained.size());
  for (const std::int64_t update : kept) {
    const auto values = saved_parameters(kept_model_file(run.path, update));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(values[i]);
  }
  const auto mean = saved_parameters(run.path);
  for (std::size_t i = 0; i < sum.size(); ++i) CHECK(mean[i] == static_cast<float>(sum[i] / 3));
  CHECK(run.messages.str().find("saved " + run.path + ", the average of the last 3 saved models\n") !=
        std::string::npos);
  CHECK(folder.files() == files);
  run.messages.str("");
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(run.messages.str().empty());

  // What is kept for the average alone goes when the average is there.
  run.run.average_last = 2;
  run.run.after = "5e";
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(run.messages.str().find("the average of the last 2 saved models\n") != std::string::npos);
  CHECK(run.messages.str().find("removed") == std::string::npos);
  CHECK(folder.files() == files);

  // A run with --keep-last decides anew, and says what it removes.
  run.run.average_last = 0;
  run.run.keep_last = 1;
  run.messages.str("");
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(run.messages.str() == "train: removed " + kept_model_file(run.path, kept[0]) + " to " +
                                  kept_model_file(run.path, kept[1]) +
                                  ", 2 models that are kept no longer (--keep-last, --average-last)\n");
  CHECK(folder.files().size() == 2);

  SmallRun bare(folder / "bare.h5");
  bare.go();
  const auto before = saved_parameters(bare.path);
  bare.run.average_last = 2;
  bare.messages.str("");
  CHECK(bare.go() == Trainer::Outcome::finished);
  CHECK(bare.messages.str() ==
        "train: " + bare.path + ": no kept model is left to average (--average-last; --keep-last keeps models)\n");
  CHECK(saved_parameters(bare.path) == before);
}

TEST_CASE("models that are kept for an average alone are removed when there will be none") {
  const TemporaryFolder folder("heed_trainer_no_average");
  SmallRun run(folder / "m.h5");
  run.run.save_freq = "5u";
  run.run.average_last = 2;
  run.prepare();
  CHECK(run.go(interrupted_at(*run.state, 7)) == Trainer::Outcome::interrupted);
  CHECK(folder.files() == std::vector<std::string>{"m.h5", "m.update-5.h5"});
  run.run.average_last = 0;
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(run.messages.str().find("train: removed " + kept_model_file(run.path, 5) +
                                ", which is kept no longer (--keep-last, --average-last)\n") != std::string::npos);
  CHECK(folder.files() == std::vector<std::string>{"m.h5"});
}

TEST_CASE("a training is the same however late the results of its updates are known") {
  const TemporaryFolder folder("heed_trainer_late");
  // The calls of the loss that are spoilt: single updates, also the last one of an epoch of 12 updates and the one
  // before it, and three in a row.
  const std::vector<int> spoilt = {2, 11, 24, 27, 28, 29, 40};
  for (const std::string after : {"70u", "4e", "2200t"}) {
    CAPTURE(after);
    std::vector<std::unique_ptr<SmallRun>> runs;
    for (const int most_submitted : {0, 1, 2, 5}) {
      CAPTURE(most_submitted);
      SmallRun& run =
          *runs.emplace_back(std::make_unique<SmallRun>(folder / (after + std::to_string(most_submitted) + ".h5")));
      run.most_submitted = most_submitted;
      run.run.after = after;
      run.run.save_freq = "23u";
      run.run.valid_freq = "17u";
      run.run.disp_freq = "19u";
      run.batch.exponential_smoothing = 0.01;
      run.optimizer.lr_schedule = ScheduleKind::cosine;
      run.optimizer.lr_warmup = 12;
      run.prepare();
      int calls = 0;
      CHECK(run.go(hooked(*run.state, [&] { return std::ranges::count(spoilt, ++calls) > 0; })) ==
            Trainer::Outcome::finished);
      CHECK(calls > 40);
      const TrainingState &state = run.state->state, &plain = runs[0]->state->state;
      CHECK(state.skipped_updates == 7);
      CHECK(state.rollbacks == 1);
      CHECK(saved_parameters(run.path) == saved_parameters(runs[0]->path));
      CHECK(state.updates == plain.updates);
      CHECK(state.optimizer_step == plain.optimizer_step);
      CHECK(state.target_tokens == plain.target_tokens);
      CHECK(state.sentences == plain.sentences);
      CHECK(state.epoch == plain.epoch);
      CHECK(state.batch == plain.batch);
      REQUIRE(state.history.size() == plain.history.size());
      for (std::size_t i = 0; i < plain.history.size(); ++i) {
        CHECK(state.history[i].update == plain.history[i].update);
        CHECK(state.history[i].epoch == plain.history[i].epoch);
        CHECK(state.history[i].loss == plain.history[i].loss);
      }
      REQUIRE(state.validations.size() == plain.validations.size());
      for (std::size_t i = 0; i < plain.validations.size(); ++i)
        CHECK(state.validations[i].scores == plain.validations[i].scores);
      const auto warnings = [](const SmallRun& of) {
        std::string out, line;
        for (std::istringstream lines(of.messages.str()); std::getline(lines, line);)
          if (line.find("is not finite") != std::string::npos) out += line + "\n";
        return out;
      };
      CHECK(std::ranges::count(warnings(run), '\n') == 7);
      CHECK(warnings(run) == warnings(*runs[0]));
    }
  }
}

TEST_CASE("a goal in hours counts the hours of training, not those since the machine was started") {
  const TemporaryFolder folder("heed_trainer_hours");
  SmallRun run(folder / "m.h5");
  run.go();
  run.state->state.seconds = 36;  // the goal, 0.01 hours, is reached
  save_checkpoint(run.path, run.state->checkpoint, run.state->state, run.state->arrays);
  for (const auto& [after, finished] :
       {std::pair<std::string, bool>{"0.01h", true}, {"0.02h", false}, {"0.03h", false}}) {
    CAPTURE(after);
    run.run.after = after;
    CHECK(run.prepare().already_finished() == finished);
  }
  // The hours of the earlier run count too.
  run.run.after = "0.0100001h";
  run.run.save_freq = "1000u";
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(run.state->state.finish_reason == "--after 0.0100001h is reached");
  CHECK(run.state->state.seconds >= 36);
  CHECK(run.state->state.seconds < 60);
}

TEST_CASE("other batches on resume: the same share of the epoch is done") {
  const TemporaryFolder folder("heed_trainer_rescale");
  SmallRun first(folder / "first.h5");
  first.run.after = "6u";
  first.go();
  const std::int64_t batches = first.state->state.window_batches, done = first.state->state.target_tokens;
  REQUIRE(batches > 8);
  REQUIRE(batches < 16);
  CHECK(first.state->state.batch == 6);
  for (const bool old_file : {false, true}) {
    for (const std::int64_t words : {60, 30, 200, 10000}) {
      CAPTURE(old_file);
      CAPTURE(words);
      SmallRun run(folder / "m.h5");
      std::filesystem::copy_file(first.path, run.path, std::filesystem::copy_options::overwrite_existing);
      run.batch.mini_batch_words = words;
      run.run.after = "7u";
      if (old_file) {  // files of older versions of heed do not have the number of batches in an epoch
        run.prepare();
        run.state->state.batch = 6;
        run.state->state.epoch = 0;
        run.state->state.window_batches = 0;
        save_checkpoint(run.path, run.state->checkpoint, run.state->state, run.state->arrays);
      }
      Trainer& trainer = run.prepare();
      const TrainingState& state = run.state->state;
      const std::int64_t now = trainer.batches_in_window();
      CAPTURE(now);
      const std::int64_t place = old_file ? std::min<std::int64_t>(6, now) : (12 * now + batches) / (2 * batches);
      CHECK(state.epoch == (place == now ? 1 : 0));
      CHECK(state.batch == (place == now ? 0 : place));
      CHECK(run.go() == Trainer::Outcome::finished);
      // Each update has tokens, and the saved state can be loaded.
      CHECK(state.history.size() == 7);
      CHECK(state.history.back().tokens > 0);
      CHECK(state.target_tokens == done + state.history.back().tokens);
      run.run.after = "4e";
      CHECK(run.go() == Trainer::Outcome::finished);
      CHECK(run.state->state.epoch == 4);
      CHECK(run.state->state.batch == 0);
      CHECK(load_resumable_checkpoint(run.path)->state.target_tokens == run.state->state.target_tokens);
    }
  }
}

TEST_CASE("a rollback to the file of a run with other batches and metrics finds its place, too") {
  const TemporaryFolder folder("heed_trainer_rollback_other");
  SmallRun first(folder / "m.h5");
  first.run.after = "6u";
  first.run.valid_freq = "2u";
  first.go();
  SmallRun run(first.path);
  run.batch.mini_batch_words = 200;
  run.run.after = "6e";
  run.run.valid_metrics = {Metric::ce_mean_words, Metric::perplexity};
  run.prepare();
  int calls = 0;
  run.go(hooked(*run.state, [&] { return ++calls <= 3; }));
  const TrainingState& state = run.state->state;
  CHECK(state.rollbacks == 1);
  CHECK(state.finished);
  CHECK(state.epoch == 6);
  CHECK(state.metrics == std::vector<std::string>{"ce-mean-words", "perplexity"});
  CHECK(state.best.size() == 2);
  for (const ValidationPoint& point : state.validations) CHECK(point.scores.size() == 2);
  CHECK(load_resumable_checkpoint(run.path)->state.epoch == 6);
}

TEST_CASE("a validation that is not finite is never the best one, and the state can be read") {
  const TemporaryFolder folder("heed_trainer_validation");
  SmallRun run(folder / "m.h5");
  run.run.keep_best = true;
  run.run.early_stopping = 5;
  run.run.valid_metrics = {Metric::perplexity, Metric::ce_mean_words};
  run.run.after = "4e";
  run.prepare();
  const auto model = run.state->checkpoint.model;
  run.go([&, model](Graph<float>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums) {
    const Variable<float> loss = model->loss(graph, batch, options, sums);
    if (!graph.recording() && run.state->state.epoch != 2) sums->entropy.negative_log_likelihood = NAN;
    return loss;
  });
  const TrainingState state = load_resumable_checkpoint(run.path)->state;
  REQUIRE(state.validations.size() == 4);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(state.validations[0].scores[i] == worst_score(run.run.valid_metrics[i]));
    CHECK(state.best[i].update == state.validations[1].update);
    CHECK(state.best[i].score == state.validations[1].scores[i]);
    CHECK(state.best[i].stalled == 2);
  }
}

TEST_CASE("no score of a validation whose cross-entropy is not finite is the best one, nor is its model kept") {
  const TemporaryFolder folder("heed_trainer_worst");
  SmallRun run(folder / "m.h5");
  run.run.keep_best = true;
  run.run.valid_metrics = {Metric::bleu, Metric::accuracy, Metric::perplexity};
  run.run.after = "2e";
  run.prepare();
  const auto model = run.state->checkpoint.model;
  run.go([model](Graph<float>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums) {
    const Variable<float> loss = model->loss(graph, batch, options, sums);
    if (!graph.recording()) sums->entropy.negative_log_likelihood = NAN;
    return loss;
  });
  CHECK(run.state->state.validations.size() == 2);
  for (const BestScore& best : run.state->state.best) {
    CHECK(best.update == -1);
    CHECK(best.stalled == 2);
  }
  CHECK(run.messages.str().find("(best)") == std::string::npos);
  CHECK(folder.files() == std::vector<std::string>{"m.h5"});
}

TEST_CASE("an update without tokens is refused") {
  const TemporaryFolder folder("heed_trainer_empty");
  SmallRun run(folder / "m.h5");
  run.prepare();
  Optimizer optimizer(run.optimizer.resolve(), run.state->checkpoint.model->layout(), run.state->arrays);
  const auto step = run.workers->make_update_step({optimizer, run.state->arrays, run.state->checkpoint.parameters});
  CHECK_THROWS_WITH_AS(step->run(run.corpus, {}, {.label_smoothing = 0.1}, {}, 1, 0.01),
                       "internal: an update without target tokens", Error);
}

TEST_CASE("a finished average still holds what training needs to go on") {
  const TemporaryFolder folder("heed_trainer_average");
  for (const double smoothing : {0.0, 0.01}) {
    SmallRun run(folder / "m.h5"), whole(folder / "w.h5");
    for (SmallRun* each : {&run, &whole}) {
      each->batch.exponential_smoothing = smoothing;
      each->run.save_freq = "1e";
    }
    run.run.average_last = 2;
    run.run.keep_last = 2;
    run.go();
    const std::string two = kept_model_file(run.path, run.state->state.kept_updates[0]),
                      three = kept_model_file(run.path, run.state->state.kept_updates[1]);
    const auto a = saved_parameters(two), b = saved_parameters(three), mean = saved_parameters(run.path);
    for (std::size_t i = 0; i < mean.size(); ++i)
      CHECK(mean[i] == static_cast<float>((static_cast<double>(a[i]) + static_cast<double>(b[i])) / 2));
    run.run.average_last = 0;
    run.run.after = whole.run.after = "4e";
    run.go();
    whole.go();
    CHECK(saved_parameters(run.path) == saved_parameters(whole.path));
    std::filesystem::remove(run.path);
    std::filesystem::remove(whole.path);
  }
}

TEST_CASE("early stopping waits for as many validations as it was told") {
  const TemporaryFolder folder("heed_trainer_early");
  SmallRun run(folder / "m.h5");
  run.optimizer.learn_rate = 0;  // the model never improves
  run.run.after = "50e";
  run.run.early_stopping = 3;
  run.run.keep_best = true;
  CHECK(run.go() == Trainer::Outcome::finished);
  CHECK(run.state->state.validations.size() == 4);
  CHECK(run.state->state.finish_reason == "no better perplexity in 3 validations");
  CHECK(folder.files() == std::vector<std::string>{"m.best-perplexity.h5", "m.h5"});
  CHECK(run.prepare().already_finished());
}

TEST_CASE("an update that is not finite is skipped and counted") {
  const TemporaryFolder folder("heed_trainer_skip");
  for (const OnDivergence policy : {OnDivergence::rollback, OnDivergence::skip}) {
    SmallRun run(folder / "m.h5");
    run.run.on_divergence = policy;
    run.prepare();
    int calls = 0;
    run.go(hooked(*run.state, [&] { return ++calls == 5; }));
    CHECK(run.state->state.skipped_updates == 1);
    CHECK(run.state->state.rollbacks == 0);
    CHECK(run.state->state.optimizer_step == run.state->state.updates - 1);
    CHECK(run.messages.str().find("update 5: the loss is not finite (first line of the batch: ") != std::string::npos);
    std::filesystem::remove(run.path);
  }
}

TEST_CASE("an update whose gradient alone is not finite is skipped, counted, reported and changes nothing") {
  const TemporaryFolder folder("heed_trainer_gradient");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), kInfinity, -kInfinity}) {
    CAPTURE(bad);
    SmallRun run(folder / "m.h5");
    run.optimizer.optimizer = OptimizerKind::adam;
    run.batch.exponential_smoothing = 0.01;
    run.prepare();
    // Everything that an update changes: the smoothed and the trained parameters, and the moments of Adam.
    const auto arrays = [&run] {
      std::vector<std::vector<float>> all{run.parameters()};
      for (auto& [name, values] : run.state->arrays) all.emplace_back(values.flat().begin(), values.flat().end());
      return all;
    };
    const auto model = run.state->checkpoint.model;
    std::vector<std::vector<float>> before, after;
    int calls = 0;
    // The loss of the fifth batch is as usual, but the gradient has one element that is not finite.
    run.go([&, model](Graph<float>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums) {
      const Variable<float> loss = model->loss(graph, batch, options, sums);
      if (!graph.recording()) return loss;
      ++calls;
      if (calls == 6) after = arrays();
      if (calls != 5) return loss;
      before = arrays();
      CHECK(std::isfinite(sums->total().loss));
      const Variable<float> weight = graph.parameter(model->layout().find("decoder/layers/0/feed_forward/in/weight"));
      graph.record([weight, bad](auto&) { weight.gradient.sum()[7] = bad; });
      return loss;
    });
    CHECK(before.size() == 4);
    CHECK(before == after);
    CHECK(run.state->state.skipped_updates == 1);
    CHECK(run.state->state.optimizer_step == run.state->state.updates - 1);
    CHECK(std::ssize(run.state->state.history) == run.state->state.updates - 1);
    CHECK(run.messages.str().find("update 5: the gradient is not finite (first line of the batch: ") !=
          std::string::npos);
    CHECK(run.messages.str().find("): skipped; skipped in all: 1") != std::string::npos);
    std::filesystem::remove(run.path);
  }
}

TEST_CASE("when it happens again and again, training goes back to the last saved state with half the rate") {
  const TemporaryFolder folder("heed_trainer_rollback");
  for (const std::string save_freq : {"4u", "1000u"}) {
    SmallRun run(folder / "m.h5");
    run.run.save_freq = save_freq;
    run.prepare();
    int calls = 0;
    run.go(hooked(*run.state, [&] {
      ++calls;
      return calls >= 10 && calls < 13;
    }));
    CHECK(run.state->state.rollbacks == 1);
    CHECK(run.state->state.skipped_updates == 3);
    CHECK(run.state->state.finished);
    CHECK(run.messages.str().find("3 updates in a row were not finite: back to update " +
                                  std::string(save_freq == "4u" ? "8" : "0") + " with half the learning rate") !=
          std::string::npos);
    std::filesystem::remove(run.path);
  }
}

TEST_CASE("training goes back to the last saved state also if only the optimiser's memory is not finite") {
  const TemporaryFolder folder("heed_trainer_memory");
  for (const OnDivergence policy : {OnDivergence::rollback, OnDivergence::skip}) {
    SmallRun run(folder / "m.h5");
    run.run.on_divergence = policy;
    run.run.keep_last = 1;
    // Adam's mean of squared gradients overflows, so that the parameters hardly change.
    run.optimizer.optimizer = OptimizerKind::adam;
    run.optimizer.weight_decay = 1e30;
    const char* const message = policy == OnDivergence::rollback
                                    ? "m.h5: training diverges however small the learning rate"
                                    : "m.h5: a parameter or a number of the optimiser is not finite after update ";
    CHECK_THROWS_WITH_AS(run.go(), doctest::Contains(message), Error);
    CHECK(folder.files().empty());
  }
}

TEST_CASE("a rollback does not bring back the validations of another text, which the run has forgotten") {
  const TemporaryFolder folder("heed_trainer_rollback_forgotten");
  SmallRun first(folder / "m.h5");
  first.run.after = "6u";
  first.run.valid_freq = "2u";
  first.go();
  CHECK(first.state->state.validations.size() == 3);
  SmallRun run(first.path);
  run.run.after = "12u";
  run.run.valid_freq = "2u";
  run.prepare();
  int calls = 0;
  Trainer& trainer = run.prepare(hooked(*run.state, [&] { return ++calls <= 3; }));
  forget_validations(run.state->state, "the text of --valid-sets", run.log);
  trainer.run(InterruptGuard());
  const TrainingState& state = run.state->state;
  CHECK(state.rollbacks == 1);
  REQUIRE(state.validations.size() == 3);
  CHECK(state.validations.front().update == 8);
}

TEST_CASE("a rollback before the first save goes back to the parameters of the pretrained model") {
  const TemporaryFolder folder("heed_trainer_rollback_pretrained");
  SmallRun first(folder / "first.h5");
  first.go();
  for (const double smoothing : {0.0, 0.01}) {
    CAPTURE(smoothing);
    SmallRun run(folder / "m.h5");
    run.pretrained_model = first.path;
    run.batch.exponential_smoothing = smoothing;
    run.run.after = "1e";
    run.prepare();
    int calls = 0;
    std::vector<float> after;
    run.go(hooked(*run.state, [&] {
      ++calls;
      if (calls == 6) after = run.parameters();
      return calls >= 3 && calls < 6;
    }));
    CHECK(run.state->state.rollbacks == 1);
    CHECK(after == first.parameters());
    std::filesystem::remove(run.path);
  }
}

TEST_CASE("after a rollback no worse model takes the place of the best one") {
  const TemporaryFolder folder("heed_trainer_rollback_best");
  for (const bool saved : {true, false}) {
    CAPTURE(saved);
    SmallRun run(folder / "m.h5");
    run.run.valid_freq = "2u";
    run.run.save_freq = saved ? "6u" : "1000u";
    run.run.keep_best = true;
    run.run.after = "14u";
    run.prepare();
    const std::string best_file = model_file_variant(run.path, "best-perplexity");
    int calls = 0;
    std::vector<float> before;
    BestScore best;
    const auto model = run.state->checkpoint.model;
    // Updates 9 to 11 diverge after a good validation at update 8. Later validations are worse, because the learning
    // goes wrong.
    run.go([&, model](Graph<float>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums) {
      const Variable<float> loss = model->loss(graph, batch, options, sums);
      const bool learning = graph.recording();
      if (learning) ++calls;
      if (learning && calls >= 9 && calls < 12) {
        if (calls == 9) {
          before = saved_parameters(best_file);
          best = run.state->state.best[0];
        }
        sums->entropy.loss = NAN;
      }
      if (!learning && calls >= 12)
        sums->entropy.negative_log_likelihood += 0.5 * static_cast<double>(sums->entropy.tokens);
      return loss;
    });
    CHECK(best.update == 8);
    const TrainingState& state = run.state->state;
    CHECK(state.rollbacks == 1);
    CHECK(run.messages.str().find(saved ? "back to update 6 with" : "back to update 0 with") != std::string::npos);
    // The later validations are worse than the validation at update 8.
    CHECK(state.validations.back().scores[0] > best.score);
    CHECK(state.best[0].score == best.score);
    CHECK(state.best[0].update == 8);
    CHECK(state.best[0].stalled == (saved ? 4 : 7));
    CHECK(saved_parameters(best_file) == before);
    CHECK(load_resumable_checkpoint(run.path)->state.best[0].score == best.score);
    std::filesystem::remove(run.path);
    std::filesystem::remove(best_file);
  }
}

TEST_CASE("where the file of the best model is missing, the next validation's model is kept") {
  const TemporaryFolder folder("heed_trainer_best_missing");
  SmallRun run(folder / "m.h5");
  run.go();
  const double before = run.state->state.best[0].score;
  run.optimizer.learn_rate = 0.5;  // this learning rate makes the model worse
  run.run.after = "4e";
  run.run.keep_best = true;
  run.go();
  const std::string file = model_file_variant(run.path, "best-perplexity");
  CHECK(run.messages.str().find("train: warning: " + file +
                                ": is missing; the model of the next validation will be kept there") !=
        std::string::npos);
  CHECK(run.state->state.best[0].score > before);
  CHECK(saved_parameters(file) == run.parameters());
}

TEST_CASE("a divergence that no learning rate cures is an error, and the file keeps the last good state") {
  const TemporaryFolder folder("heed_trainer_diverges");
  SmallRun run(folder / "m.h5");
  run.run.after = "1u";
  run.go();
  const auto good = saved_parameters(run.path);
  run.run.after = "10e";
  run.prepare();
  CHECK_THROWS_WITH_AS(run.go(hooked(*run.state, [] { return true; })),
                       (run.path + ": training diverges however small the learning rate; the file holds the last good "
                                   "state (look at the data, lower --learn-rate, or raise --lr-warmup)")
                           .c_str(),
                       Error);
  CHECK(saved_parameters(run.path) == good);
  SmallRun unsaved(folder / "unsaved.h5");
  unsaved.prepare();
  CHECK_THROWS_WITH_AS(unsaved.go(hooked(*unsaved.state, [] { return true; })),
                       (unsaved.path + ": training diverges however small the learning rate; nothing was saved (look "
                                       "at the data, lower --learn-rate, or raise --lr-warmup)")
                           .c_str(),
                       Error);
  run.run.on_divergence = OnDivergence::stop;
  run.prepare();
  CHECK_THROWS_AS(run.go(hooked(*run.state, [] { return true; })), Error);
  CHECK(saved_parameters(run.path) == good);
}

TEST_CASE("parameters that are not finite are never saved") {
  const TemporaryFolder folder("heed_trainer_overflow");
  SmallRun run(folder / "m.h5");
  run.optimizer.optimizer = OptimizerKind::sgd;
  run.optimizer.learn_rate = 1e60;
  run.optimizer.clip_norm = 1e6;
  run.run.save_freq = "1u";
  CHECK_THROWS_AS(run.go(), Error);
  CHECK(!std::filesystem::exists(run.path));
}

TEST_CASE("trial updates that are not finite are counted, and the trial goes on") {
  const TemporaryFolder folder("heed_trainer_trial");
  for (const int most_submitted : {0, 2}) {
    SmallRun run(folder / "m.h5");
    run.most_submitted = most_submitted;
    run.prepare();
    int calls = 0;
    Trainer& trainer = run.prepare(hooked(*run.state, [&] { return ++calls % 4 == 3; }));
    const Trainer::Trial trial = trainer.try_updates(8);
    CHECK(trial.tokens_per_second > 0);
    CHECK(trial.not_finite == 2);
    // An update that was submitted before the result of a bad one was known is given up.
    CHECK(trial.updates == (most_submitted > 0 ? 6 : 8));
    CHECK(run.state->state.optimizer_step == (most_submitted > 0 ? 5 : 7));
  }
  CHECK(folder.files().empty());
}

TEST_CASE("the history stays small and keeps its mean") {
  TrainingState state;
  double sum = 0;
  for (int i = 1; i <= 5000; ++i) {
    add_to_history(state, i, i / 100.0, 3.0 * i, 3);
    sum += 3.0 * i;
  }
  CHECK(state.history.size() <= 1024);
  CHECK(state.history.size() > 256);
  double kept = state.open_point.loss;
  for (const LossPoint& point : state.history) kept += point.loss * static_cast<double>(point.tokens);
  CHECK(kept == doctest::Approx(sum));
  CHECK(state.history.back().epoch == doctest::Approx(static_cast<double>(state.history.back().update) / 100));
}

TEST_CASE("a picture compares trainings by their validation, or by their loss where they validate nothing but BLEU") {
  const TemporaryFolder folder("heed_trainer_compared");
  SmallRun first(folder / "first.h5"), second(folder / "second.h5");
  first.run.after = second.run.after = "2e";
  first.go();
  second.run.plot = folder / "both.svg";
  second.run.plot_with = {first.path};
  second.go();
  std::ifstream picture(second.run.plot);
  const std::string svg{std::istreambuf_iterator<char>(picture), {}};
  CHECK(svg.find(">first<") != std::string::npos);
  CHECK(svg.find(">second<") != std::string::npos);
  CHECK(svg.find(">training<") == std::string::npos);

  // A finished training, started again, draws too.
  std::filesystem::remove(second.run.plot);
  CHECK(second.go() == Trainer::Outcome::finished);
  CHECK(std::filesystem::exists(second.run.plot));

  const std::string bare = folder / "bare.h5";
  save_checkpoint(bare, first.state->checkpoint);
  CHECK_THROWS_WITH_AS(load_compared_trainings({bare}),
                       (bare + ": holds no state of a training that could be drawn (--plot-with)").c_str(), Error);
}

TEST_CASE("equal names in a picture have as many folders before them as tell them apart") {
  using Names = std::vector<std::string>;
  CHECK(names_in_plot({"x/a.h5", "y/b.h5", "c"}) == Names{"a", "b", "c"});
  CHECK(names_in_plot({"x/m.h5", "y/m.h5", "y/n.h5"}) == Names{"x/m", "y/m", "n"});
  CHECK(names_in_plot({"a/x/m.h5", "b/x/m.h5", "c/y/m.h5"}) == Names{"a/x/m", "b/x/m", "y/m"});
  CHECK(names_in_plot({"m.h5", "x/m.h5", "../m.h5", "/m.h5"}) == Names{"m", "x/m", "../m", "m"});
  CHECK(names_in_plot({"m.h5", "./m.h5"}) == Names{"m", "m"});  // the same file
}

TEST_CASE("a learning curve draws entropies on the left, and every other metric of validations on the right") {
  const TemporaryFolder folder("heed_trainer_curve");
  TrainingState state;
  state.history = {{1, 0.1, 3, 10}, {9, 0.9, 1, 10}};
  const auto picture = [&](std::vector<std::string> metrics) {
    state.metrics = std::move(metrics);
    state.validations = {{4, 0.4, std::vector<double>(state.metrics.size(), 60)},
                         {8, 0.8, std::vector<double>(state.metrics.size(), 90)}};
    plot_learning_curve(state, "curve", folder / "curve.svg");
    std::ifstream file(folder / "curve.svg");
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  const auto has = [](const std::string& svg, const std::string& text) {
    return svg.find(">" + text + "<") != std::string::npos;
  };
  const std::string labels = picture({"perplexity", "accuracy"}), trees = picture({"evalb", "exact"}),
                    text = picture({"bleu", "ce-mean-words"});
  CHECK(has(labels, "validation accuracy"));
  CHECK(has(labels, "accuracy (%)"));
  CHECK(has(labels, "100"));  // the end of the right axis
  CHECK(has(trees, "validation evalb"));
  CHECK(has(trees, "validation exact"));
  CHECK(has(trees, "evalb, exact (%)"));
  CHECK(!has(trees, "validation"));
  CHECK(has(text, "validation BLEU"));
  CHECK(has(text, "BLEU"));
  CHECK(has(text, "validation"));

  // A comparison draws the losses, 3 and 1, of a training that validates no entropy.
  picture({"accuracy"});
  plot_comparison({{"a", &state}}, folder / "both.svg");
  std::ifstream file(folder / "both.svg");
  const std::string both{std::istreambuf_iterator<char>(file), {}};
  CHECK(has(both, "3"));
  CHECK(!has(both, "60"));
}

TEST_CASE("several ranks end with the bits of one process, also when another number of them goes on") {
  const TemporaryFolder folder("heed_ranks");
  for (const bool special : {false, true}) {
    CAPTURE(special);
    const InterruptGuard interrupts;
    const auto train = [&](Communicator& ranks, const std::string& name, int threads, const std::string& after) {
      SmallRun run(folder / (name + (special ? "_special.h5" : ".h5")), threads);
      run.ranks = &ranks;
      if (special) {
        run.config.normalization = Normalization::batch;
        run.batch.exponential_smoothing = 0.05;
        run.batch.optimizer_delay = 3;
        run.run.keep_last = 2;
        run.run.keep_best = true;
        run.optimizer.optimizer = OptimizerKind::adamw;
        run.optimizer.weight_decay = 0.1;
      }
      run.batch.mini_batch_words = 300;
      run.run.after = after;
      run.run.save_freq = "2u";
      run.prepare().run(interrupts);
      return run.parameters();
    };
    const std::vector<float> one = train(no_other_ranks(), "one", 2, "4e");
    for (const int size : {2, 3}) {
      CAPTURE(size);
      std::vector<std::vector<float>> all(static_cast<std::size_t>(size));
      const std::string name = "ranks" + std::to_string(size);
      run_ranks(size, [&](Communicator& ranks) {
        all[static_cast<std::size_t>(ranks.rank())] = train(ranks, name, 1, "4e");
      });
      for (const auto& each : all) CHECK(each == one);
      CHECK(saved_parameters(folder / (name + (special ? "_special.h5" : ".h5"))) == one);
    }
    run_ranks(3, [&](Communicator& ranks) { train(ranks, "changed", 1, "1e"); });
    run_ranks(2, [&](Communicator& ranks) { train(ranks, "changed", 2, "3e"); });
    CHECK(train(no_other_ranks(), "changed", 3, "4e") == one);
  }
}
