#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "heed/autograd/device_parameters.h"
#include "heed/model/model.h"
#include "test_device.h"

namespace heed {

// What the tests of all models share.

/// Fills the parameters with the formula of scripts/reference/make_transformer_reference.py, make_rnn_reference.py and
/// make_vision_reference.py, so that the reference files need no weights.
template <class T>
void fill(ParameterValues<T>& values) {
  const auto& all = values.layout().all();
  for (int j = 0; j < static_cast<int>(all.size()); ++j) {
    const Tensor<T> value = values[{j}];
    const std::string& name = all[static_cast<std::size_t>(j)].name;
    const bool scale = name.ends_with("/scale") || name.ends_with("/running_variance");  // these must be positive
    for (std::int64_t i = 0; i < value.size(); ++i)
      value[i] = static_cast<T>(0.3 * std::sin(1 + 0.7 * j + 0.91 * static_cast<double>(i)) + (scale ? 1 : 0));
  }
}

inline PackedIds pack(const nlohmann::json& sequences) {
  PackedIds out;
  for (const auto& sequence : sequences) out.append(sequence.get<std::vector<std::int32_t>>());
  return out;
}

template <class Enum>
Enum parse(const nlohmann::json& name) {
  for (const auto& [value, text] : EnumNames<Enum>::values)
    if (text == name.get<std::string>()) return value;
  FAIL("unknown name ", name.dump());
  return {};
}

inline double number(const nlohmann::json& value) {
  return value.get<double>();
}

/// Returns the contents of a file in tests/model/reference.
inline nlohmann::json reference(const std::string& file) {
  std::ifstream in(std::string(HEED_TEST_DATA) + "/model/reference/" + file);
  return nlohmann::json::parse(in);
}

/// Returns the batch of a reference file.
inline Batch batch_of(const nlohmann::json& all) {
  Batch batch{pack(all["source"]), pack(all["target_in"]), pack(all["target_out"]).ids};
  for (const auto& link : all.value("alignment", nlohmann::json::array()))
    batch.alignment.push_back(
        {link[0].get<std::int32_t>(), link[1].get<std::int32_t>(), link[2].get<std::int32_t>(), link[3].get<float>()});
  return batch;
}

template <class T>
void check_close(Tensor<T> actual, const nlohmann::json& expected, double tolerance) {
  REQUIRE(actual.size() == static_cast<std::int64_t>(expected.size()));
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    INFO("element ", i);
    CHECK(actual[i] ==
          doctest::Approx(expected[static_cast<std::size_t>(i)].get<double>()).epsilon(tolerance).scale(1));
  }
}

/// Checks the loss and the gradients of a model against a case `c` of a reference file.
template <class T>
void check_loss_and_gradients(const Model<T>& model, ParameterValues<T>& values, const Batch& batch,
                              const nlohmann::json& c, double tolerance) {
  ParameterValues<T> gradients(model.layout());
  TestDevice test_device;
  const Device device = test_device;
  const DeviceParameters<T> device_values(device, values), device_gradients(device, gradients);
  Graph<T> graph(device, device_values.view(), device_gradients.view());
  PendingSums pending;
  const double weight = c.value("alignment_weight", 0.0);
  const Variable<T> loss = model.loss(graph, batch, {.label_smoothing = 0.1, .alignment_weight = weight}, &pending);
  CHECK(device.read(loss.value) == doctest::Approx(number(c["loss"])).epsilon(tolerance));
  const LossSums sums = pending.total();
  CHECK(sums.negative_log_likelihood == doctest::Approx(number(c["nll"])).epsilon(tolerance));
  const std::int64_t targets = std::ssize(batch.target_out);
  CHECK(sums.tokens == c.value("tokens", targets));
  CHECK(sums.target_tokens == targets);
  graph.backward(loss);
  device_gradients.get();
  CHECK(model.layout().all().size() == c["gradients"].size());
  for (const auto& [parameter, expected] : c["gradients"].items()) {
    CAPTURE(parameter);
    const ParameterId id = model.layout().find(parameter);
    REQUIRE(id);
    double squares = 0;
    for (const T g : gradients[id].span()) squares += static_cast<double>(g) * static_cast<double>(g);
    CHECK(std::sqrt(squares) == doctest::Approx(number(expected["norm"])).epsilon(10 * tolerance).scale(1));
    for (std::size_t i = 0; i < expected["first"].size(); ++i)
      CHECK(gradients[id][static_cast<std::int64_t>(i)] ==
            doctest::Approx(number(expected["first"][i])).epsilon(10 * tolerance).scale(1));
  }
}

/// Returns the sequences begin ... end - 1 of a batch, without alignments.
inline Batch part_of(const Batch& batch, int begin, int end) {
  Batch out;
  for (int b = begin; b < end; ++b) {
    out.source.append(batch.source.sequence(b));
    out.target_in.append(batch.target_in.sequence(b));
    const PackedOffsets target = batch.target_in.packed();
    const auto first = batch.target_out.begin() + target.begin(b);
    out.target_out.insert(out.target_out.end(), first, first + target.length(b));
    if (batch.second_targets.empty()) continue;
    const auto second = batch.second_targets.begin() + target.begin(b);
    const auto share = batch.second_shares.begin() + target.begin(b);
    out.second_targets.insert(out.second_targets.end(), second, second + target.length(b));
    out.second_shares.insert(out.second_shares.end(), share, share + target.length(b));
  }
  return out;
}

/// Checks that dropout depends on the sequence and not on the cut of a batch: the gradient of a batch is the sum of the
/// gradients of its sequences.
inline void check_dropout_of_parts(const Model<double>& model, ParameterValues<double>& values, const Batch& batch,
                                   double consistency = 0) {
  TestDevice device;
  ParameterValues<double> whole(model.layout()), sum(model.layout());
  const DeviceParameters<double> device_values(device, values);
  const auto add = [&](ParameterValues<double>& gradients, int begin, int end) {
    const DeviceParameters<double> device_gradients(device, gradients);
    Graph<double> graph(device, device_values.view(), device_gradients.view());
    graph.set_dropout({.seed = 3, .update = 5}, static_cast<std::uint32_t>(begin));
    graph.backward(
        model.loss(graph, part_of(batch, begin, end), {.label_smoothing = 0.1, .consistency = consistency}, nullptr));
    device_gradients.get();
  };
  add(whole, 0, batch.sequences());
  for (int b = 0; b < batch.sequences(); ++b) add(sum, b, b + 1);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < whole.flat().size(); ++i) {
    difference = std::max(difference, std::abs(whole.flat()[i] - sum.flat()[i]));
    size = std::max(size, std::abs(whole.flat()[i]));
  }
  CHECK(size > 0.01);
  CHECK(difference < 1e-12 * std::max(size, 1.0));
}

/// Checks that a GPU computes the loss and the gradients that a CPU computes, with the same dropout masks. (Finite
/// differences would take minutes on an emulated GPU.)
inline void check_against_cpu(const Model<double>& model, ParameterValues<double>& values, const Batch& batch,
                              double consistency) {
  ParameterValues<double> expected(model.layout()), found(model.layout());
  const auto loss_on = [&](Device device, ParameterValues<double>& gradients) {
    const DeviceParameters<double> device_values(device, values), device_gradients(device, gradients);
    Graph<double> graph(device, device_values.view(), device_gradients.view());
    graph.set_dropout({.seed = 11, .update = 3});
    const Variable<double> loss = model.loss(
        graph, batch, {.label_smoothing = 0.1, .scale = 0.5, .alignment_weight = 0.3, .consistency = consistency},
        nullptr);
    const double value = device.read(loss.value);
    graph.backward(loss);
    device_gradients.get();
    return value;
  };
  Arena arena;
  CpuContext cpu{arena};
  TestDevice gpu;
  const double expected_loss = loss_on(cpu, expected), found_loss = loss_on(gpu, found);
  CHECK(found_loss == doctest::Approx(expected_loss).epsilon(1e-12));
  for (int j = 0; j < static_cast<int>(model.layout().all().size()); ++j) {
    CAPTURE(model.layout()[ParameterId{j}].name);
    double worst = 0;
    for (std::int64_t i = 0; i < expected[{j}].size(); ++i)
      worst = std::max(worst, std::abs(expected[{j}][i] - found[{j}][i]));
    CHECK(worst < 1e-11);
  }
}

/// Checks the gradients of the loss against finite differences: for each parameter, the element with the largest
/// gradient and four random ones. The model may have dropout, and two passes that should agree (`consistency`). Where
/// the batch has alignments, the loss includes them.
inline void check_finite_differences(const Model<double>& model, ParameterValues<double>& values, const Batch& batch,
                                     bool has_dropout, double consistency = 0) {
  if (kTestsGpu) return check_against_cpu(model, values, batch, consistency);
  ParameterValues<double> gradients(model.layout());
  Arena arena;
  CpuContext device{arena};
  Graph<double> graph(device, values, gradients);
  // Computes the loss with the dropout masks of one key, and on demand the gradients.
  const auto loss_of = [&](const DropoutKey& key, bool backward) {
    graph.reset();
    graph.set_dropout(key);
    const Variable<double> loss = model.loss(
        graph, batch, {.label_smoothing = 0.1, .scale = 0.5, .alignment_weight = 0.3, .consistency = consistency},
        nullptr);
    const double value = loss.value[0];
    if (backward) graph.backward(loss);
    return value;
  };
  const DropoutKey key{.seed = 11, .update = 3};
  const double loss = loss_of(key, true);
  // A copy, because the loss adds to the gradient of the output layer in every forward pass.
  ParameterValues<double> analytic = gradients;
  CHECK(loss_of(key, false) == loss);
  if (has_dropout) CHECK(std::abs(loss_of({.seed = 11, .update = 4}, false) - loss) > 0.001);

  const auto check_element = [&](ParameterId id, std::int64_t i) {
    CAPTURE(i);
    constexpr double kStep = 1e-5;
    double& element = values[id][i];
    const double before = element;
    element = before + kStep;
    const double above = loss_of(key, false);
    element = before - kStep;
    const double below = loss_of(key, false);
    element = before;
    CHECK(analytic[id][i] == doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-7).scale(1));
  };
  const std::size_t trained = model.layout().all().size() - model.layout().running().size();
  for (int j = 0; j < static_cast<int>(trained); ++j) {
    const ParameterId id{j};
    CAPTURE(model.layout()[id].name);
    const auto gradient = analytic[id].span();
    const auto largest = std::max_element(gradient.begin(), gradient.end(),
                                          [](double a, double b) { return std::abs(a) < std::abs(b); });
    check_element(id, largest - gradient.begin());
    const RandomStream stream(static_cast<std::uint64_t>(j), RandomUse::sampling);
    for (std::uint64_t draw = 0; draw < 4; ++draw)
      check_element(id, static_cast<std::int64_t>(stream.below(gradient.size(), draw)));
  }
}

/// Checks that decoding step by step gives what decoding at once gives, also with rows that were reordered and with
/// chains of tokens. `batch` has three sentences, whose targets have at least 1, 3 and 1 tokens.
template <class T>
void check_steps(const Model<T>& model, ParameterValues<T>& values, const Batch& batch, double tolerance) {
  Arena arena;
  CpuContext cpu{arena};
  TestDevice test_device;
  const Device device = test_device;
  const DeviceParameters<T> device_values(device, values);
  Graph<T> graph(cpu, values), step_graph(device, device_values.view());
  const Variable<T> expected = model.hidden(graph, batch);
  const PackedOffsets offsets = batch.target_in.packed();
  const std::unique_ptr<DecoderState<T>> state = model.make_state(device);
  const auto check_row = [&](Tensor<T> on_device, std::int64_t row, int sentence, int position) {
    const Tensor<T> hidden = device.download(on_device);
    CAPTURE(sentence);
    CAPTURE(position);
    for (std::int64_t i = 0; i < hidden.columns(); ++i)
      CHECK(hidden.row(row)[i] ==
            doctest::Approx(expected.value.row(offsets.begin(sentence) + position)[i]).epsilon(tolerance).scale(1));
  };
  const auto token = [&](int sentence, int position) {
    return batch.target_in.sequence(sentence)[static_cast<std::size_t>(position)];
  };

  // The rows are sentence 1 and sentence 0 in step 0; from step 1 on, sentence 1 twice and sentence 0.
  state->start(step_graph, batch.source);
  state->select(std::vector<std::int32_t>{1, 0});
  std::vector<int> sentence_of_row{1, 0};
  for (int t = 0; t < 3; ++t) {
    if (t == 1) {
      state->select(std::vector<std::int32_t>{0, 0, 1});
      sentence_of_row = {1, 1, 0};
    }
    std::vector<std::int32_t> tokens;
    for (const int s : sentence_of_row) tokens.push_back(token(s, t));
    step_graph.reset();
    const Variable<T> hidden = state->step(step_graph, tokens);
    REQUIRE(hidden.value.rows() == static_cast<std::int64_t>(tokens.size()));
    for (std::size_t r = 0; r < tokens.size(); ++r)
      check_row(hidden.value, static_cast<std::int64_t>(r), sentence_of_row[r], t);
  }

  // A chain of two tokens, of which the first is kept; then a step; then back to the first token, and a chain of two.
  PackedIds one;
  one.append(batch.source.sequence(1));
  step_graph.reset();
  state->start(step_graph, one);
  const std::vector<std::int32_t> ids = {token(1, 0), token(1, 1), token(1, 2)};
  const std::vector<std::int32_t> two = {2};
  Variable<T> hidden = state->step_chains(step_graph, std::span(ids).first(2), two);
  check_row(hidden.value, 0, 1, 0);
  check_row(hidden.value, 1, 1, 1);
  state->select(std::vector<std::int32_t>{0});
  step_graph.reset();
  check_row(state->step(step_graph, std::span(ids).subspan(1, 1)).value, 0, 1, 1);
  state->truncate(std::vector<std::int32_t>{1});
  step_graph.reset();
  hidden = state->step_chains(step_graph, std::span(ids).subspan(1, 2), two);
  check_row(hidden.value, 0, 1, 1);
  check_row(hidden.value, 1, 1, 2);
}

}  // namespace heed
