#include "heed/train/resume.h"

#include "heed/model/transformer.h"
#include "heed/train/model_files.h"
#include "small_run.h"

using namespace heed;

namespace {

Checkpoint checkpoint(const TransformerConfig& config) {
  auto model = std::make_shared<const Transformer<float>>(config);
  ParameterValues<float> parameters(model->layout());
  return {model, std::move(parameters), letters(), letters()};
}

ResumableCheckpoint saved_run() {
  return {checkpoint(small_config()), {}, {}};
}

}  // namespace

TEST_CASE("a saved run goes on only with the same model, text and optimiser") {
  std::ostringstream messages;
  Log log(messages, "train");
  ResumableCheckpoint saved = saved_run();
  saved.state.settings = {{"the training text's fingerprint", "aa"}, {"--seed", "1"}};
  const std::string advice = " (give the same options as before, or name another model with -m)";

  TransformerConfig wider = small_config();
  wider.dim_emb = 32;
  CHECK_THROWS_WITH_AS(check_resumable("m.h5", saved, checkpoint(wider), {}),
                       ("m.h5: cannot go on with this training: --dim-emb is 16 there, 32 here" + advice).c_str(),
                       Error);

  // All numbers of a list are shown, also of an empty one.
  TransformerConfig deep = small_config(), tied = small_config();
  deep.enc_depth = deep.dec_depth = tied.enc_depth = tied.dec_depth = 3;
  tied.tied_layers = {1, 1, 1};
  saved.checkpoint = checkpoint(tied);
  CHECK_THROWS_WITH_AS(
      check_resumable("m.h5", saved, checkpoint(deep), {}),
      ("m.h5: cannot go on with this training: --tied-layers is 1 1 1 there, not set here" + advice).c_str(), Error);
  deep.tied_layers = {1, 1, 3};
  CHECK_THROWS_WITH_AS(
      check_resumable("m.h5", saved, checkpoint(deep), {}),
      ("m.h5: cannot go on with this training: --tied-layers is 1 1 1 there, 1 1 3 here" + advice).c_str(), Error);
  saved.checkpoint = checkpoint(small_config());

  Checkpoint other = checkpoint(small_config());
  TextSteps steps = letters().steps();
  steps.lowercase = true;
  other.target = TextModel(steps, Subwords(), std::make_shared<const Vocabulary>(letters().vocabulary()));
  CHECK_THROWS_WITH_AS(
      check_resumable("m.h5", saved, other, {}),
      ("m.h5: cannot go on with this training: the target vocabulary differs in its text steps" + advice).c_str(),
      Error);

  CHECK_THROWS_WITH_AS(
      check_resumable("m.h5", saved, checkpoint(small_config()), {{"the training text's fingerprint", "bb", true}}),
      ("m.h5: cannot go on with this training: the training text's fingerprint is aa there, bb here" + advice).c_str(),
      Error);

  const std::vector<std::string> changes = check_resumable(
      "m.h5", saved, checkpoint(small_config()), {{"the training text's fingerprint", "aa", true}, {"--seed", "2"}});
  CHECK(changes == std::vector<std::string>{"--seed was 1 and is now 2"});
  CHECK(messages.str().empty());
  warn_of_changes(changes, log);
  CHECK(messages.str() ==
        "train: warning: --seed was 1 and is now 2: the result will differ from that of an uninterrupted run\n");
  CHECK(saved.state.settings[1].second == "2");

  // The file of an older heed, which did not have --r-drop yet.
  messages.str({});
  CHECK(check_resumable("m.h5", saved, checkpoint(small_config()), {{"--seed", "2"}, {"--r-drop", "0", false, "0"}})
            .empty());
  saved.state.settings.clear();
  warn_of_changes(check_resumable("m.h5", saved, checkpoint(small_config()), {{"--r-drop", "5", false, "0"}}), log);
  CHECK(messages.str() ==
        "train: warning: --r-drop was 0 and is now 5: the result will differ from that of an uninterrupted run\n");
}

TEST_CASE("a changed text is reported with the options that may have changed it") {
  std::ostringstream messages;
  Log log(messages, "train");
  ResumableCheckpoint saved = saved_run();
  saved.state.settings = {{"the text's fingerprint", "aa"}, {"--max-length", "256"}, {"--pretokenized", "false"}};
  const std::vector<RunSetting> settings = {
      {"the text's fingerprint", "bb", true},
      {.name = "--pretokenized", .value = "true", .of_text = true},
      {.name = "--on-invalid-utf8", .value = "keep", .of_text = true},  // which the saved training does not tell
      {"--max-length", "8"},
      {"--seed", "1", false, "1"}};
  CHECK_THROWS_WITH_AS(check_resumable("m.h5", saved, checkpoint(small_config()), settings),
                       "m.h5: cannot go on with this training: the text's fingerprint is aa there, bb here; "
                       "--pretokenized is false there, true here; --max-length is 256 there, 8 here (give the same "
                       "options as before, or name another model with -m)",
                       Error);
  CHECK(messages.str().empty());
  // What has changed nothing of the text changes nothing of the result.
  saved.state.settings[0].second = "bb";
  warn_of_changes(check_resumable("m.h5", saved, checkpoint(small_config()), settings), log);
  CHECK(
      messages.str() ==
      "train: warning: --max-length was 256 and is now 8: the result will differ from that of an uninterrupted run\n");
  CHECK(saved.state.settings[2].second == "keep");
}

TEST_CASE("a place in an epoch, where its batches become more or fewer") {
  CHECK(scaled_batch(6, 12, 12) == 6);
  CHECK(scaled_batch(6, 12, 1) == 1);
  CHECK(scaled_batch(5, 12, 1) == 0);
  CHECK(scaled_batch(5, 12, 24) == 10);
  CHECK(scaled_batch(0, 12, 7) == 0);
  CHECK(scaled_batch(12, 12, 7) == 7);
  const std::int64_t large = std::int64_t{1} << 53;
  CHECK(scaled_batch(large, large, 1 << 30) == 1 << 30);
  CHECK(scaled_batch(large, 1, 7) == 7);
}

TEST_CASE("averaging refuses models that do not fit together") {
  const TemporaryFolder folder("heed_average");
  TransformerConfig wider = small_config();
  wider.dim_ffn = 64;
  save_checkpoint(folder / "a.h5", checkpoint(small_config()));
  save_checkpoint(folder / "b.h5", checkpoint(wider));
  CHECK_THROWS_WITH_AS(average_checkpoints({folder / "a.h5", folder / "b.h5"}),
                       ((folder / "b.h5") + ": cannot be averaged with " + (folder / "a.h5") +
                        ": --transformer-dim-ffn is 64 there, 32 here")
                           .c_str(),
                       Error);
}

TEST_CASE("trained models are compared without what matters in training alone") {
  const TemporaryFolder folder("heed_pretrained");
  const auto save = [&](const char* name, double dropout, float value) {
    Checkpoint model = checkpoint(small_config(dropout));
    std::ranges::fill(model.parameters.flat(), value);
    save_checkpoint(folder / name, model);
  };
  save("a.h5", 0.1, 1);
  save("b.h5", 0.3, 2);
  CHECK(average_checkpoints({folder / "a.h5", folder / "b.h5"}).parameters.flat().back() == 1.5f);

  Checkpoint fresh = checkpoint(small_config(0.2));
  set_first_parameters(fresh, 1, folder / "b.h5");
  CHECK(std::ranges::count(fresh.parameters.flat(), 2.0f) == std::ssize(fresh.parameters.flat()));
  TransformerConfig deeper = small_config();
  deeper.enc_depth = 2;
  Checkpoint other = checkpoint(deeper);
  CHECK_THROWS_WITH_AS(set_first_parameters(other, 1, folder / "b.h5"),
                       ((folder / "b.h5") + ": cannot begin this training: --enc-depth is 1 there, 2 here (give the "
                                            "vocabularies and the options of the model with which it was trained)")
                           .c_str(),
                       Error);
}

TEST_CASE("names of the files beside a model") {
  CHECK(model_file_variant("dir/model.h5", "best-bleu") == "dir/model.best-bleu.h5");
  CHECK(model_file_variant("model", "best-bleu") == "model.best-bleu.h5");
  CHECK(kept_model_file("m.h5", 1500) == "m.update-1500.h5");
}
