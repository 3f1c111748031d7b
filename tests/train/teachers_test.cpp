#include "heed/train/teachers.h"

#include "heed/model/make_model.h"
#include "heed/train/gradient_workers.h"
#include "small_run.h"

using namespace heed;

namespace {

Checkpoint checkpoint(const ModelConfig& config, std::uint64_t seed, const TextModel& target = letters()) {
  const std::shared_ptr<const Model<float>> model = make_model<float>(config);
  ParameterValues<float> parameters(model->layout());
  parameters.initialise(seed);
  return {model, std::move(parameters), letters(), target};
}

}  // namespace

TEST_CASE("teachers: a student has nothing to learn of what it predicts itself") {
  const TemporaryFolder folder("heed_teachers");
  Checkpoint student = checkpoint(small_config(0), 3);
  save_checkpoint(folder / "same.h5", student);
  save_checkpoint(folder / "other.h5", checkpoint(small_config(0.5), 4));
  const ParallelCorpus corpus = mirrored(30);
  EpochBatches batches(corpus, {.target_tokens = 100}, 1);
  batches.prepare(0);
  std::vector<Shard> shards;
  cut_into_shards(corpus, batches[0], shards);
  ThreadPool pool(2);
  // Returns the norm of the gradient, and writes the sums.
  const auto norm_with = [&](const std::vector<std::string>& names, double share, LossSums& sums) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(folder / name);
    Teachers teachers(paths, student, 100);
    CHECK(teachers.size() == names.size());
    GradientWorkers workers(student.model->layout(), teachers.loss_of(*student.model, share), Precision::float32, pool);
    sums = workers.compute(student.parameters, corpus, shards, {.label_smoothing = 0.1}, {});
    const double norm = workers.reduce();
    CHECK(workers.evaluate(student.parameters, corpus, shards, nullptr).negative_log_likelihood ==
          doctest::Approx(sums.negative_log_likelihood));
    return norm;
  };
  LossSums same, other, both, half, plain;
  CHECK(norm_with({"same.h5"}, 1, same) < 1e-4);
  CHECK(norm_with({"other.h5"}, 1, other) > 1e-2);
  // The loss is linear in the predictions and in the share.
  norm_with({"same.h5", "other.h5"}, 1, both);
  CHECK(both.loss == doctest::Approx((same.loss + other.loss) / 2));
  norm_with({"same.h5"}, 0, plain);
  norm_with({"same.h5"}, 0.5, half);
  CHECK(half.loss == doctest::Approx((same.loss + plain.loss) / 2));
  CHECK(plain.loss != doctest::Approx(same.loss));
}

TEST_CASE("teachers: those that predict all positions at once predict the positions that their student does") {
  const TemporaryFolder folder("heed_teachers");
  TransformerConfig config = small_config(0);
  config.decoder_autoreg = DecoderAutoreg::none;
  config.fixed_length = 12;  // so that no loss of lengths has a gradient
  Checkpoint student = checkpoint(config, 3);
  save_checkpoint(folder / "same.h5", student);
  const ParallelCorpus corpus = mirrored(30);
  EpochBatches batches(corpus, {.target_tokens = 100}, 1);
  batches.prepare(0);
  std::vector<Shard> shards;
  for (int i = 0; i < 2; ++i) cut_into_shards(corpus, batches[i], shards);
  ThreadPool pool(2);
  Teachers teachers({folder / "same.h5"}, student, config.fixed_length);
  GradientWorkers workers(student.model->layout(), teachers.loss_of(*student.model, 1), Precision::float32, pool);
  workers.compute(student.parameters, corpus, shards, {}, {.seed = 5, .update = 2});
  CHECK(workers.reduce() < 1e-4);
}

TEST_CASE("teachers: a model that cannot teach is refused, with the reason") {
  const TemporaryFolder folder("heed_teachers");
  const Checkpoint student = checkpoint(small_config(), 3);
  const auto refused = [&](const Checkpoint& teacher, const std::string& reason) {
    save_checkpoint(folder / "t.h5", teacher);
    CHECK_THROWS_WITH_AS(Teachers({folder / "t.h5"}, student, 100),
                         ((folder / "t.h5") + ": cannot be a teacher: " + reason).c_str(), Error);
  };
  TextSteps steps = letters().steps();
  steps.lowercase = true;
  refused(checkpoint(small_config(), 3,
                     TextModel(steps, Subwords(), std::make_shared<const Vocabulary>(letters().vocabulary()))),
          "the target vocabulary differs in its text steps");
  TransformerConfig parallel = small_config();
  parallel.decoder_autoreg = DecoderAutoreg::none;
  refused(checkpoint(parallel, 3), "it predicts all positions at once, the model to be trained does not");
  TransformerConfig learned = small_config();
  learned.positions = PositionEncoding::learned;
  learned.max_positions = 50;
  refused(checkpoint(learned, 3), "it reads no more than 50 tokens (give --max-length 50)");
}
