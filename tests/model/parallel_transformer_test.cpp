#include "heed/model/parallel_transformer.h"

#include <map>

#include "heed/base/error.h"
#include "model_test.h"

using namespace heed;

namespace {

TransformerConfig small_parallel() {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 11;
  config.dim_emb = 8;
  config.heads = 2;
  config.dim_ffn = 12;
  config.enc_depth = config.dec_depth = 2;
  config.dropout = 0;
  config.decoder_autoreg = DecoderAutoreg::none;
  config.length_range = 6;
  return config;
}

template <class T>
struct Small {
  explicit Small(const TransformerConfig& config = small_parallel()) : model(config), values(model.layout()) {
    fill(values);
  }
  ParallelTransformer<T> model;
  ParameterValues<T> values;
  Arena arena;
  CpuContext device{arena};
};

Batch three_pairs() {
  Batch batch;
  batch.add(std::vector<std::int32_t>{4, 5, 6}, std::vector<std::int32_t>{6, 7});
  batch.add(std::vector<std::int32_t>{7}, std::vector<std::int32_t>{9, 4, 5, 8});
  batch.add(std::vector<std::int32_t>{8, 9, 10, 4}, std::vector<std::int32_t>{5});
  return batch;
}

/// Returns how many tokens of a target of `length` pieces are predicted in the loss of an update.
std::int64_t predicted(int length, std::uint64_t update, int fixed) {
  TransformerConfig config = small_parallel();
  config.fixed_length = fixed;
  Small<float> f(config);
  Batch batch;
  batch.add(std::vector<std::int32_t>{4, 5}, std::vector<std::int32_t>(static_cast<std::size_t>(length), 6));
  Graph<float> graph(f.device, f.values);
  graph.set_dropout({.seed = 5, .update = update});
  PendingSums sums;
  f.model.loss(graph, batch, {}, &sums);
  return sums.entropy.tokens;
}

}  // namespace

TEST_CASE("parallel transformer: the number of masked tokens is uniform in 1 ... all") {
  for (const int fixed : {0, 6}) {
    CAPTURE(fixed);
    constexpr int kUpdates = 3000;
    std::map<std::int64_t, int> counts;
    for (std::uint64_t update = 0; update < kUpdates; ++update) ++counts[predicted(4, update, fixed)];
    const int all = fixed > 0 ? 5 : 4;  // a fixed length predicts </s> too
    CHECK(counts.size() == static_cast<std::size_t>(all));
    for (const auto& [tokens, count] : counts) {
      CHECK(tokens >= 1);
      CHECK(tokens <= all);
      CHECK(std::abs(count - kUpdates / all) < 120);  // five standard deviations
    }
  }
}

TEST_CASE("parallel transformer: a target without pieces has only its length to learn") {
  Small<double> f;
  ParameterValues<double> gradients(f.model.layout());
  Graph<double> graph(f.device, f.values, gradients);
  Batch batch;
  batch.add(std::vector<std::int32_t>{4, 5}, {});
  PendingSums sums;
  const Variable<double> loss = f.model.loss(graph, batch, {}, &sums);
  CHECK(sums.entropy.tokens == 0);
  CHECK(sums.target_tokens == 1);
  CHECK(sums.total().loss == doctest::Approx(loss.value[0]));
  CHECK(loss.value[0] > 0);
  graph.backward(loss);
  double size = 0;
  for (const double g : gradients[f.model.layout().find("length/bias")].span()) size += std::abs(g);
  CHECK(size > 0.1);
}

TEST_CASE("parallel transformer: several targets of a source are predicted as each of them alone") {
  Small<float> f;
  const Batch batch = three_pairs();
  PackedIds targets;
  const std::vector<std::vector<std::int32_t>> all = {{2, 7, 3}, {2, 2, 2, 3}, {5, 2, 6, 2, 3}, {2, 3}};
  const std::vector<std::int32_t> sentences = {0, 0, 2, 2};  // source 1 has no target
  for (const auto& target : all) targets.append(target);
  Graph<float> graph(f.device, f.values);
  const auto together = f.model.make_parallel_state(f.device);
  together->start(graph, batch.source);
  graph.reset();
  const Tensor<float> found = together->predict(graph, targets, sentences).value;
  REQUIRE(found.rows() == 14);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Arena own_arena;
    CpuContext own_device{own_arena};
    Graph<float> own(own_device, f.values);
    PackedIds source, target;
    source.append(batch.source.sequence(sentences[i]));
    target.append(all[i]);
    const auto alone = f.model.make_parallel_state(own_device);
    alone->start(own, source);
    own.reset();
    const Tensor<float> expected = alone->predict(own, target, std::vector<std::int32_t>{0}).value;
    for (std::int64_t j = 0; j < expected.size(); ++j)
      CHECK(found.row(targets.packed().begin(static_cast<int>(i)))[j] == expected[j]);
  }
}

TEST_CASE("parallel transformer: every position depends on the tokens before and behind it, and not on masked ones") {
  Small<double> f;
  const Batch batch = three_pairs();
  const auto predict = [&](const std::vector<std::int32_t>& ids) {
    Graph<double> graph(f.device, f.values);
    PackedIds targets;
    targets.append(ids);
    const auto state = f.model.make_parallel_state(f.device);
    state->start(graph, batch.source);
    const Tensor<double> out = state->predict(graph, targets, std::vector<std::int32_t>{1}).value;
    return std::vector<double>(out.data(), out.data() + out.size());
  };
  const auto first = predict({2, 5, 2, 3}), other = predict({2, 5, 6, 3});
  for (int row = 0; row < 4; ++row)
    CHECK(first[static_cast<std::size_t>(row) * 8] != other[static_cast<std::size_t>(row) * 8]);
}

TEST_CASE("parallel transformer: the probabilities of all lengths sum to 1, and none is below 1") {
  Small<double> f;
  const Batch batch = three_pairs();
  Graph<double> graph(f.device, f.values);
  const auto state = f.model.make_parallel_state(f.device);
  state->start(graph, batch.source);
  const auto lengths = state->lengths();
  REQUIRE(lengths.size() == 3);
  // Source 1 has 2 tokens: its differences -6 ... -2 would give no tokens.
  CHECK(lengths[1].size() == 8);
  CHECK(lengths[1].front().tokens == 1);
  CHECK(lengths[1].back().tokens == 8);
  // Source 2 has 5 tokens, of which at most 4 can be left out.
  CHECK(lengths[2].front().tokens == 1);
  CHECK(lengths[2].back().tokens == 11);

  TransformerConfig wide = small_parallel();
  wide.length_range = 1;
  Small<double> g(wide);
  Graph<double> all(g.device, g.values);
  const auto other = g.model.make_parallel_state(g.device);
  other->start(all, batch.source);
  double sum = 0;
  const auto near = other->lengths();
  for (const TargetLength& each : near[0]) sum += std::exp(static_cast<double>(each.log_probability));
  CHECK(sum == doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("parallel transformer: a fixed length is the only length; longer targets are an error that says what to do") {
  TransformerConfig config = small_parallel();
  config.fixed_length = 4;
  Small<float> f(config);
  CHECK(f.model.predicts_end());
  CHECK(!f.model.layout().find("length/weight"));
  const Batch batch = three_pairs();
  Graph<float> graph(f.device, f.values);
  const auto state = f.model.make_parallel_state(f.device);
  state->start(graph, batch.source);
  for (const auto& lengths : state->lengths()) {
    REQUIRE(lengths.size() == 1);
    CHECK(lengths.front().tokens == 4);
    CHECK(lengths.front().log_probability == 0);
  }
  CHECK_THROWS_WITH_AS(f.model.loss(graph, batch, {}, nullptr),
                       "a target of 5 tokens is longer than --fixed-length 4 (cut it with --max-length)", Error);
  CHECK(longest_sequence(ModelConfig(config)) == 4);
  config.positions = PositionEncoding::learned;
  config.max_positions = 3;
  CHECK_THROWS_WITH_AS(config.validate(), "--fixed-length 4 is more than --max-positions 3", UsageError);
}
