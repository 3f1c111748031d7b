#include "heed/decode/mask_predict.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "heed/decode/force.h"
#include "heed/model/parallel_transformer.h"
#include "heed/text/strings/vocabulary.h"
#include "random_model.h"
#include "random_shortlist.h"
#include "same_hypotheses.h"

using namespace heed;

namespace {

using Ids = std::vector<std::int32_t>;
constexpr std::int32_t M = kStartId, E = kEndId;  // masked; the end

/// A model of 12 tokens that a test gives as functions.
class TestModel : public ParallelModel {
 public:
  /// Returns the lengths of the target of a source, which is known by its first token.
  std::function<std::vector<TargetLength>(std::int32_t)> length;
  /// Returns the probabilities of the likeliest tokens of a place in a target. The others have tiny ones.
  std::function<std::map<std::int32_t, double>(std::int32_t source, const Ids& target, std::size_t place)> tokens;
  bool ends = false;
  /// All targets that were to be predicted, iteration after iteration.
  std::vector<std::vector<Ids>> seen;

  std::int64_t vocabulary() const override { return 12; }
  bool predicts_end() const override { return ends; }
  void start(const PackedIds& source) override {
    sources_.clear();
    for (int s = 0; s < source.sequences(); ++s) sources_.push_back(source.sequence(s)[0]);
  }
  std::vector<std::vector<TargetLength>> lengths() const override {
    std::vector<std::vector<TargetLength>> out;
    for (const std::int32_t source : sources_) out.push_back(length(source));
    return out;
  }
  Tensor<float> scores(const MaskedBatch& batch) override {
    seen.emplace_back();
    for (int t = 0; t < batch.targets.sequences(); ++t) {
      const auto target = batch.targets.sequence(t);
      seen.back().emplace_back(target.begin(), target.end());
    }
    scores_.assign(batch.rows.size() * 12, -20);
    for (std::size_t r = 0; r < batch.rows.size(); ++r) {
      int target = 0;
      while (batch.targets.packed().begin(target + 1) <= batch.rows[r]) ++target;
      const auto place = static_cast<std::size_t>(batch.rows[r] - batch.targets.packed().begin(target));
      const Ids& ids = seen.back()[static_cast<std::size_t>(target)];
      CHECK(ids[place] == M);
      const auto source = static_cast<std::size_t>(batch.sentences[static_cast<std::size_t>(target)]);
      for (const auto& [token, p] : tokens(sources_[source], ids, place))
        scores_[r * 12 + static_cast<std::size_t>(token)] = static_cast<float>(std::log(p));
    }
    return {scores_.data(), {static_cast<std::int64_t>(batch.rows.size()), 12}};
  }
  void share_with(ThreadTeam*) override {}

 private:
  std::vector<std::int32_t> sources_;
  std::vector<float> scores_;
};

PackedIds source_of(const Ids& first) {
  PackedIds out;
  for (const std::int32_t id : first) out.append(Ids{id, E});
  return out;
}

float ln(double p) {
  return static_cast<float>(std::log(p));
}

void check_log_probabilities(const Hypothesis& hypothesis, const std::vector<double>& probabilities) {
  REQUIRE(hypothesis.log_probabilities.size() == probabilities.size());
  double sum = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    CHECK(hypothesis.log_probabilities[i] == doctest::Approx(ln(probabilities[i])).epsilon(1e-4));
    sum += std::log(probabilities[i]);
  }
  CHECK(hypothesis.sum == doctest::Approx(sum).epsilon(1e-4));
}

/// A model whose first prediction of places 0 ... 3 is 5, 6, 7, 8 with the probabilities 0.9, 0.5, 0.7, 0.5, and which
/// corrects a place to 11, with the probability 0.8, once it sees a token beside it.
TestModel correcting() {
  TestModel model;
  model.length = [](std::int32_t) { return std::vector<TargetLength>{{5, ln(0.6)}}; };
  model.tokens = [](std::int32_t, const Ids& target, std::size_t place) -> std::map<std::int32_t, double> {
    const double first[] = {0.9, 0.5, 0.7, 0.5};
    const auto token = static_cast<std::int32_t>(5 + place);
    const bool alone = (place == 0 || target[place - 1] == M) && (target[place + 1] == M || target[place + 1] == E);
    if (!alone) return {{11, 0.8}, {token, 0.2}};
    return {{token, first[place]}, {10, 1 - first[place]}};
  };
  return model;
}

}  // namespace

TEST_CASE("mask-predict: each iteration predicts the least likely tokens anew, fewer each time") {
  TestModel model = correcting();
  SearchOptions options;
  options.iterations = 1;
  Hypothesis found = mask_predict(model, source_of({4}), options).at(0).at(0);
  CHECK(found.ids == Ids{5, 6, 7, 8});
  check_log_probabilities(found, {0.9, 0.5, 0.7, 0.5, 0.6});
  CHECK(found.score == doctest::Approx(found.sum / 5));
  CHECK(model.seen == std::vector<std::vector<Ids>>{{{M, M, M, M, E}}});

  // Iteration 1 of 2 masks 4 / 2 tokens: those of the probability 0.5.
  model.seen.clear();
  options.iterations = 2;
  found = mask_predict(model, source_of({4}), options).at(0).at(0);
  CHECK(found.ids == Ids{5, 11, 7, 11});
  check_log_probabilities(found, {0.9, 0.8, 0.7, 0.8, 0.6});
  CHECK(model.seen == std::vector<std::vector<Ids>>{{{M, M, M, M, E}}, {{5, M, 7, M, E}}});

  // Of 4 iterations the second masks 3 tokens, the third 2 and the last 1. Of equally likely tokens, the first is
  // masked; and of the repetition 11 11 one is masked before 8, which is less likely.
  model.seen.clear();
  options.iterations = 4;
  found = mask_predict(model, source_of({4}), options).at(0).at(0);
  CHECK(model.seen ==
        std::vector<std::vector<Ids>>{{{M, M, M, M, E}}, {{5, M, M, M, E}}, {{5, 11, M, M, E}}, {{5, M, 11, 8, E}}});
  CHECK(found.ids == Ids{5, 11, 11, 8});
}

TEST_CASE("mask-predict: a token that was not masked keeps its log-probability; short targets are done early") {
  TestModel model = correcting();
  model.length = [](std::int32_t source) { return std::vector<TargetLength>{{source == 4 ? 5 : 2, ln(0.5)}}; };
  SearchOptions options;
  options.iterations = 2;
  const auto found = mask_predict(model, source_of({4, 9}), options);
  REQUIRE(found.size() == 2);
  CHECK(found[1].at(0).ids == Ids{5});
  check_log_probabilities(found[1].at(0), {0.9, 0.5});
  // The target of one piece is not predicted again.
  REQUIRE(model.seen.size() == 2);
  CHECK(model.seen[0].size() == 2);
  CHECK(model.seen[1].size() == 1);
}

TEST_CASE("mask-predict: the likeliest lengths are tried, and the best score wins") {
  TestModel model;
  model.length = [](std::int32_t) {
    return std::vector<TargetLength>{{1, ln(0.05)}, {2, ln(0.1)}, {3, ln(0.5)}, {4, ln(0.3)}, {5, ln(0.05)}};
  };
  model.tokens = [](std::int32_t, const Ids& target, std::size_t) -> std::map<std::int32_t, double> {
    const double p = target.size() == 4 ? 0.9 : 0.6;
    return {{7, p}, {8, 1 - p}};
  };
  SearchOptions options;
  options.iterations = 1;
  options.length_candidates = 2;
  options.n_best = 2;
  auto found = mask_predict(model, source_of({4}), options).at(0);
  REQUIRE(found.size() == 2);
  CHECK(found[0].ids == Ids{7, 7, 7});
  check_log_probabilities(found[0], {0.9, 0.9, 0.9, 0.3});
  CHECK(found[1].ids == Ids{7, 7});
  CHECK(found[0].score == doctest::Approx(found[0].sum / 4));
  CHECK(model.seen.at(0).size() == 2);

  options.length_candidates = 1;
  CHECK(mask_predict(model, source_of({4}), options).at(0).size() == 1);
  CHECK(mask_predict(model, source_of({4}), options).at(0).at(0).ids == Ids{7, 7});
  // Without pieces there is no translation: the length of </s> alone is never tried.
  options.length_candidates = 10;
  CHECK(mask_predict(model, source_of({4}), options).at(0).size() == 2);
  options.n_best = 10;
  CHECK(mask_predict(model, source_of({4}), options).at(0).size() == 4);
  // The limits of lengths hold; if no length is within them, the nearest that is allowed is taken.
  options.min_output_length = 4;
  found = mask_predict(model, source_of({4}), options).at(0);
  REQUIRE(found.size() == 1);
  CHECK(found[0].ids.size() == 4);
  options.min_output_length = 6;
  found = mask_predict(model, source_of({4}), options).at(0);
  REQUIRE(found.size() == 1);
  CHECK(found[0].ids.size() == 6);
  options.min_output_length = 0;
  options.max_output_length = 1;
  found = mask_predict(model, source_of({4}), options).at(0);
  REQUIRE(found.size() == 1);
  CHECK(found[0].ids == Ids{7});
}

TEST_CASE("mask-predict: no reserved token is produced, however likely it is") {
  TestModel model;
  model.length = [](std::int32_t) { return std::vector<TargetLength>{{3, ln(1)}}; };
  model.tokens = [](std::int32_t, const Ids&, std::size_t) -> std::map<std::int32_t, double> {
    return {{kPadId, 0.3}, {kUnknownId, 0.2}, {kStartId, 0.15}, {kEndId, 0.25}, {9, 0.1}};
  };
  SearchOptions options;
  const Hypothesis found = mask_predict(model, source_of({4}), options).at(0).at(0);
  CHECK(found.ids == Ids{9, 9});
  check_log_probabilities(found, {0.1, 0.1, 1});
}

TEST_CASE("mask-predict: with a fixed length, a target is cut at its first </s>") {
  // In the first iteration, place 2 is </s> with a low probability; places 3 to 5 are something. Once it sees the
  // tokens before it, place 2 is 8 instead, and </s> is at place 4.
  TestModel model;
  model.ends = true;
  model.length = [](std::int32_t) { return std::vector<TargetLength>{{6, 0}}; };
  model.tokens = [](std::int32_t, const Ids& target, std::size_t place) -> std::map<std::int32_t, double> {
    const bool knows = target[0] != M;
    switch (place) {
      case 0:
        return {{6, 0.9}, {10, 0.1}};
      case 1:
        return {{7, 0.8}, {10, 0.2}};
      case 2:
        return knows ? std::map<std::int32_t, double>{{8, 0.95}, {10, 0.05}}
                     : std::map<std::int32_t, double>{{E, 0.4}, {10, 0.3}};
      case 4:
        return {{E, 0.7}, {10, 0.3}};
      default:
        return {{9, 0.6}, {10, 0.4}};
    }
  };
  SearchOptions options;
  options.iterations = 1;
  Hypothesis found = mask_predict(model, source_of({4}), options).at(0).at(0);
  CHECK(found.ids == Ids{6, 7});
  // 0.4 / 0.7: the scores of place 2 do not sum to 1.
  check_log_probabilities(found, {0.9, 0.8, 0.4 / 0.7});

  // Iteration 1 of 3 masks two of the three tokens that count: 7 and </s>. As the end is masked, all behind it is
  // predicted as well. Iteration 2 masks one of five: place 3.
  model.seen.clear();
  options.iterations = 3;
  found = mask_predict(model, source_of({4}), options).at(0).at(0);
  CHECK(model.seen == std::vector<std::vector<Ids>>{{{M, M, M, M, M, M}}, {{6, M, M, M, M, M}}, {{6, 7, 8, M, E, M}}});
  CHECK(found.ids == Ids{6, 7, 8, 9});
  check_log_probabilities(found, {0.9, 0.8, 0.95, 0.6, 0.7});

  // A target that is too short has no </s> there, and one without </s> is cut where the limit is.
  options.iterations = 1;
  options.min_output_length = 3;
  found = mask_predict(model, source_of({4}), options).at(0).at(0);
  CHECK(found.ids == Ids{6, 7, 10, 9});
  options.min_output_length = 6;
  found = mask_predict(model, source_of({4}), options).at(0).at(0);
  CHECK(found.ids == Ids{6, 7, 10, 9, 10, 9});
  CHECK(found.log_probabilities.size() == 6);
  options.min_output_length = 0;
  options.max_output_length = 1;
  found = mask_predict(model, source_of({4}), options).at(0).at(0);
  CHECK(found.ids == Ids{6});
  CHECK(found.log_probabilities.size() == 1);
}

TEST_CASE("mask-predict: scores that are not numbers are an error, and no source gives no translation") {
  TestModel model = correcting();
  model.tokens = [](std::int32_t, const Ids&, std::size_t) -> std::map<std::int32_t, double> {
    return {{7, std::numeric_limits<double>::quiet_NaN()}};
  };
  CHECK_THROWS_AS(mask_predict(model, source_of({4}), {}), Error);
  CHECK(mask_predict(model, {}, {}).empty());
}

namespace {

struct RandomParallel {
  explicit RandomParallel(std::uint64_t seed, int fixed = 0) {
    TransformerConfig config;
    config.source_vocabulary = 83;
    config.target_vocabulary = 90;
    config.dim_emb = 40;
    config.heads = 4;
    config.dim_ffn = 72;
    config.enc_depth = config.dec_depth = 2;
    config.decoder_autoreg = DecoderAutoreg::none;
    config.length_range = 9;
    config.fixed_length = fixed;
    model = std::make_unique<ParallelTransformer<float>>(config);
    parameters = std::make_unique<ParameterValues<float>>(model->layout());
    parameters->initialise(seed);
    for (float& x : parameters->flat()) x *= 2;
  }
  std::unique_ptr<ParallelModel> parallel(Precision precision, std::shared_ptr<const Shortlist> list = {}) const {
    return std::make_unique<NetworkParallelModel>(*model, *parameters, precision, nullptr, std::move(list));
  }
  std::unique_ptr<ParallelTransformer<float>> model;
  std::unique_ptr<ParameterValues<float>> parameters;
};

PackedIds nine_sentences() {
  PackedIds out;
  for (int seed = 0; seed < 9; ++seed) out.append(random_sentence(seed));
  return out;
}

}  // namespace

TEST_CASE("mask-predict: a sentence gives the same bits alone and in a batch") {
  for (const int fixed : {0, 14}) {
    const RandomParallel f(3, fixed);
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      CAPTURE(static_cast<int>(precision));
      SearchOptions options;
      options.n_best = fixed > 0 ? 1 : 3;
      const auto model = f.parallel(precision);
      const PackedIds all = nine_sentences();
      const auto together = mask_predict(*model, all, options);
      for (int s = 0; s < all.sequences(); ++s) {
        PackedIds one;
        one.append(all.sequence(s));
        check_same(mask_predict(*model, one, options).at(0), together.at(static_cast<std::size_t>(s)));
      }
      ThreadTeam team(2);
      model->share_with(&team);
      const auto shared = mask_predict(*model, all, options);
      for (std::size_t s = 0; s < together.size(); ++s) check_same(shared[s], together[s]);
    }
  }
}

TEST_CASE("mask-predict: forced scores are those of the first iteration") {
  for (const int fixed : {0, 14}) {
    const RandomParallel f(4, fixed);
    SearchOptions options;
    options.iterations = 1;
    const auto model = f.parallel(Precision::float32);
    Batch pairs;
    std::vector<Hypothesis> found;
    for (int seed = 0; seed < 9; ++seed) {
      PackedIds one;
      one.append(random_sentence(seed));
      found.push_back(mask_predict(*model, one, options).at(0).at(0));
      std::vector<std::int32_t> source = random_sentence(seed);
      source.pop_back();
      pairs.add(source, found.back().ids);
    }
    const auto forced = ForcedDecoder(*f.model, *f.parameters, Precision::float32).scores(pairs);
    for (std::size_t s = 0; s < found.size(); ++s) {
      if (fixed > 0) continue;  // there, the model reads fewer positions than in the search
      REQUIRE(forced[s].size() == found[s].log_probabilities.size());
      for (std::size_t i = 0; i < forced[s].size(); ++i)
        CHECK(forced[s][i] == doctest::Approx(found[s].log_probabilities[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("mask-predict: a shortlist of all pieces changes nothing, and a short one is obeyed") {
  const RandomParallel f(5);
  const PackedIds all = nine_sentences();
  SearchOptions options;
  options.n_best = 3;
  const auto expected = mask_predict(*f.parallel(Precision::float32), all, options);
  const auto whole = mask_predict(*f.parallel(Precision::float32, random_shortlist(90, 86, 1)), all, options);
  for (std::size_t s = 0; s < expected.size(); ++s) {
    REQUIRE(whole[s].size() == expected[s].size());
    for (std::size_t i = 0; i < whole[s].size(); ++i) CHECK(whole[s][i].ids == expected[s][i].ids);
  }
  const std::shared_ptr<const Shortlist> list = random_shortlist(90, 5, 7);
  const auto limited = mask_predict(*f.parallel(Precision::float32, list), all, options);
  for (std::size_t s = 0; s < limited.size(); ++s) {
    std::vector<std::int32_t> allowed;
    list->targets_of(all.sequence(static_cast<int>(s)), allowed);
    for (const Hypothesis& hypothesis : limited[s])
      for (const std::int32_t id : hypothesis.ids) CHECK(std::ranges::binary_search(allowed, id));
  }
}

TEST_CASE("mask-predict: an ensemble of a model with itself is the model, and of two the mean of both") {
  const RandomParallel f(6), g(7);
  const PackedIds all = nine_sentences();
  const auto ensemble = [](std::initializer_list<const RandomParallel*> members) {
    std::vector<std::unique_ptr<ParallelModel>> models;
    for (const RandomParallel* each : members) models.push_back(each->parallel(Precision::float32));
    return EnsembleParallelModel(std::move(models));
  };
  EnsembleParallelModel twice = ensemble({&f, &f}), both = ensemble({&f, &g});
  const auto expected = mask_predict(*f.parallel(Precision::float32), all, {}), found = mask_predict(twice, all, {});
  for (std::size_t s = 0; s < found.size(); ++s) {
    CHECK(found[s].at(0).ids == expected[s].at(0).ids);
    CHECK(found[s].at(0).sum == doctest::Approx(expected[s].at(0).sum).epsilon(1e-4));
  }
  MaskedBatch batch{{}, {0}, {0, 1}};
  batch.targets.append(Ids{M, M, E});
  PackedIds one;
  one.append(all.sequence(3));
  const auto mf = f.parallel(Precision::float32), mg = g.parallel(Precision::float32);
  for (ParallelModel* model : {mf.get(), mg.get(), static_cast<ParallelModel*>(&both)}) model->start(one);
  const auto probability = [](const Tensor<float>& scores, std::int64_t row, std::int64_t token) {
    double sum = 0;
    for (std::int64_t v = 0; v < scores.columns(); ++v) sum += std::exp(static_cast<double>(scores.row(row)[v]));
    return std::exp(static_cast<double>(scores.row(row)[token])) / sum;
  };
  const Tensor<float> x = mf->scores(batch), y = mg->scores(batch), mean = both.scores(batch);
  for (std::int64_t row = 0; row < 2; ++row)
    for (std::int64_t token = 0; token < 90; ++token)
      CHECK(probability(mean, row, token) ==
            doctest::Approx((probability(x, row, token) + probability(y, row, token)) / 2).epsilon(1e-4));
  const auto of_f = mf->lengths().at(0), of_g = mg->lengths().at(0), of_both = both.lengths().at(0);
  REQUIRE(of_both.size() == of_f.size());
  for (std::size_t i = 0; i < of_both.size(); ++i)
    CHECK(std::exp(of_both[i].log_probability) ==
          doctest::Approx((std::exp(of_f[i].log_probability) + std::exp(of_g[i].log_probability)) / 2).epsilon(1e-4));
}

TEST_CASE("mask-predict: where no token is allowed, the translation is empty") {
  TestModel model;
  model.length = [](std::int32_t) { return std::vector<TargetLength>{{3, 0}}; };
  model.tokens = [](std::int32_t source, const Ids&, std::size_t) {
    std::map<std::int32_t, double> out;
    for (std::int32_t id = source == 4 ? kReservedIds : 11; id < 12; ++id) out[id] = 0;
    return out;
  };
  const auto found = mask_predict(model, source_of({4, 5}), SearchOptions());
  CHECK(found.at(0).at(0).ids.empty());
  CHECK(found.at(0).at(0).score == 0);
  CHECK(found.at(1).at(0).ids.size() == 2);
}
