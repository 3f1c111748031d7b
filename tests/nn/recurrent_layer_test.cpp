#include "heed/nn/recurrent_layer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "training.h"

using namespace heed;

namespace {

/// Fills a tensor with the numbers of array `number` of make_recurrent_reference.py.
template <class T>
void fill(Tensor<T> x, int number) {
  for (std::int64_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<T>(0.5 * std::sin(1 + 0.7 * number + 0.91 * static_cast<double>(i)));
}

template <class T>
void check_numbers(const char* what, std::size_t which, const T* actual, const nlohmann::json& expected) {
  const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-10;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double x = expected[i].get<double>();
    INFO(what, " ", which, " element ", i, ": ", actual[i], ", PyTorch ", x);
    CHECK(std::abs(static_cast<double>(actual[i]) - x) <= tolerance * std::max(1.0, std::abs(x)));
  }
}

/// Computes a case of the reference file with heed's layers, and compares the outputs and all gradients.
template <class T>
void check_layer_case(const nlohmann::json& file, const nlohmann::json& data) {
  const bool lstm = data["cell"] == "lstm", both = data["bidirectional"].get<bool>();
  const std::int64_t ways = both ? 2 : 1, context_width = data["context"].get<std::int64_t>();
  const auto width = ways * file["width"].get<std::int64_t>();
  const int depth = file["layers"].get<int>();
  std::vector<std::int32_t> offsets = {0};
  for (const int length : file["lengths"]) offsets.push_back(offsets.back() + length);
  const PackedOffsets packed{offsets};

  ParameterLayout layout;
  const RecurrentStack stack(layout, "rnn",
                             {.cell = lstm ? RecurrentCell::lstm : RecurrentCell::gru,
                              .direction = both ? Direction::both : Direction::forward,
                              .input = file["input"].get<std::int64_t>(),
                              .width = file["width"].get<std::int64_t>(),
                              .context = context_width},
                             depth, 0);
  CHECK(layout.all().size() == data["gradients"].size());
  ParameterValues<T> values(layout), gradients(layout);
  int number = 0;
  Training<T> t;
  Graph<T> graph(t.device, values, gradients);
  const auto input = [&](const Shape& shape) {
    const Tensor<T> value = t.arena.template tensor<T>(shape);
    fill(value, number++);
    return graph.input(value, true);
  };
  const auto x = input({packed.tokens(), file["input"].get<std::int64_t>()});
  std::vector<Variable<T>> inputs = {x};
  std::vector<RecurrentState<T>> first(static_cast<std::size_t>(depth)), last = first;
  for (const auto part : {&RecurrentState<T>::hidden, &RecurrentState<T>::cell}) {
    if (part == &RecurrentState<T>::cell && !lstm) continue;
    // One array of the reference holds the states of all layers.
    const Tensor<T> all = t.arena.template tensor<T>({depth, packed.sequences(), width});
    fill(all, number++);
    for (int i = 0; i < depth; ++i) {
      const Tensor<T> value(all.data() + i * packed.sequences() * width, {packed.sequences(), width});
      first[static_cast<std::size_t>(i)].*part = graph.input(value, true);
      inputs.push_back(first[static_cast<std::size_t>(i)].*part);
    }
  }
  const Variable<T> context = context_width ? input({packed.sequences(), context_width}) : Variable<T>();
  if (context) inputs.push_back(context);
  for (const auto& info : layout.all()) fill(values[layout.find(info.name)], number++);

  const auto y = stack(graph, x, packed, first, last, context);
  std::vector<Variable<T>> outputs = {y};
  for (const auto& state : last) outputs.push_back(state.hidden);
  for (const auto& state : last)
    if (lstm) outputs.push_back(state.cell);
  // Concatenates the last states of all layers, as the reference does, and compares.
  std::vector<std::vector<T>> expected(lstm ? 3 : 2);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto& to = expected[i == 0 ? 0 : 1 + (i - 1) / static_cast<std::size_t>(depth)];
    to.insert(to.end(), outputs[i].value.data(), outputs[i].value.data() + outputs[i].value.size());
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(expected[i].size() == data["outputs"][i].size());
    check_numbers("output", i, expected[i].data(), data["outputs"][i]);
  }

  const Variable<T> loss = graph.result({});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::size_t which = i == 0 ? 0 : 1 + (i - 1) / static_cast<std::size_t>(depth);
    const Tensor<T> factors = t.arena.template tensor<T>({static_cast<std::int64_t>(expected[which].size())});
    fill(factors, 100 + static_cast<int>(which));
    const std::int64_t at =
        i == 0 ? 0 : static_cast<std::int64_t>((i - 1) % static_cast<std::size_t>(depth)) * outputs[i].value.size();
    graph.record([to = outputs[i], factors, at](auto&) {
      const Tensor<T> gradient = to.gradient.sum();
      for (std::int64_t j = 0; j < gradient.size(); ++j) gradient[j] += factors[at + j];
    });
  }
  graph.backward(loss);
  std::vector<std::vector<T>> input_gradients(data["input_gradients"].size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_context = context && i + 1 == inputs.size();
    const std::size_t which = i == 0       ? 0
                              : is_context ? input_gradients.size() - 1
                                           : 1 + (i - 1) / static_cast<std::size_t>(depth);
    const Tensor<T> gradient = inputs[i].gradient.sum();
    input_gradients[which].insert(input_gradients[which].end(), gradient.data(), gradient.data() + gradient.size());
  }
  for (std::size_t i = 0; i < input_gradients.size(); ++i) {
    REQUIRE(input_gradients[i].size() == data["input_gradients"][i].size());
    check_numbers("gradient of input", i, input_gradients[i].data(), data["input_gradients"][i]);
  }
  for (const auto& info : layout.all()) {
    const auto& parameter = data["gradients"][info.name.substr(4)];
    const Tensor<T> gradient = gradients[layout.find(info.name)];
    double norm = 0;
    for (std::int64_t i = 0; i < gradient.size(); ++i) norm += static_cast<double>(gradient[i]) * gradient[i];
    norm = std::sqrt(norm);
    INFO("parameter ", info.name);
    CHECK(norm == doctest::Approx(parameter["norm"].get<double>()).epsilon(std::is_same_v<T, float> ? 1e-5 : 1e-9));
    check_numbers("gradient", 0, gradient.data(), parameter["first"]);
  }
}

}  // namespace

TEST_CASE("recurrent layers: as PyTorch's nn.GRU and nn.LSTM, outputs, last states and all gradients") {
  std::ifstream in(std::string(HEED_TEST_DATA) + "/nn/reference/recurrent.json");
  REQUIRE(in.good());
  const auto file = nlohmann::json::parse(in);
  REQUIRE(file["cases"].size() == 4);
  for (const auto& data : file["cases"]) {
    INFO("cell ", data["cell"].get<std::string>(), ", bidirectional ", data["bidirectional"].get<bool>());
    check_layer_case<double>(file, data);
    check_layer_case<float>(file, data);
  }
}

TEST_CASE("recurrent layers: the steps of decoding give the bits of the whole sequence, in every precision") {
  for (const RecurrentCell cell : {RecurrentCell::gru, RecurrentCell::lstm})
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      CAPTURE(static_cast<int>(cell));
      CAPTURE(static_cast<int>(precision));
      ParameterLayout layout;
      const RecurrentStack stack(layout, "rnn", {.cell = cell, .input = 19, .width = 37, .context = 5}, 2, 0.5);
      ParameterValues<float> values(layout);
      values.initialise(3);
      Training<float> t;
      CpuContext device{t.arena, precision};
      PackedParameters<float> packed_weights(values);
      Graph<float> graph(device, values, &packed_weights);
      // Four sequences of three tokens, each with first states and a context.
      const std::vector<std::int32_t> offsets = {0, 3, 6, 9, 12};
      const auto x = t.normal({12, 19}), context = t.normal({4, 5});
      std::array<RecurrentState<float>, 2> first, last;
      for (auto& state : first) state = {t.normal({4, 37}), t.normal({4, 37})};
      const auto whole = stack(graph, x, {offsets}, first, last, context);
      auto states = first;
      const auto context_gates = stack[0].project_context(graph, context);
      for (int step = 0; step < 3; ++step) {
        const auto tokens = graph.input(t.arena.tensor<float>({4, 19}));
        for (int b = 0; b < 4; ++b) std::copy_n(x.value.row(3 * b + step), 19, tokens.value.row(b));
        const auto y = stack.step(graph, tokens, states, context_gates);
        for (int b = 0; b < 4; ++b)
          CHECK(std::equal(y.value.row(b), y.value.row(b) + 37, whole.value.row(3 * b + step)));
      }
      for (std::size_t i = 0; i < 2; ++i) {
        CHECK(largest_difference(states[i].hidden.value, last[i].hidden.value) == 0);
        if (cell == RecurrentCell::lstm) CHECK(largest_difference(states[i].cell.value, last[i].cell.value) == 0);
      }
    }
}

TEST_CASE("recurrent layers: weights that exist in packed form only, in every precision") {
  for (const RecurrentCell cell : {RecurrentCell::gru, RecurrentCell::lstm})
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      CAPTURE(static_cast<int>(cell));
      CAPTURE(static_cast<int>(precision));
      ParameterLayout layout;
      const RecurrentStack stack(
          layout, "rnn", {.cell = cell, .direction = Direction::both, .input = 19, .width = 37, .context = 5}, 2, 0);
      ParameterValues<float> values(layout), unread(layout);
      values.initialise(3);
      // The biases are in memory; the weights come from a source while they are packed.
      PackedParameters<float> packed_weights(unread, [&](std::int64_t first, std::span<float> out) {
        std::copy_n(values.flat().begin() + first, out.size(), out.begin());
      });
      for (const auto& info : layout.all()) {
        const Tensor<float> value = values[layout.find(info.name)];
        if (info.shape.rank() == 1)
          for (float& x : value.span()) x = 0.1F;
        if (info.shape.rank() == 1) std::copy_n(value.data(), value.size(), unread[layout.find(info.name)].data());
      }
      Training<float> t;
      CpuContext device{t.arena, precision};
      Graph<float> plain(device, values), packed(device, unread, &packed_weights);
      const std::vector<std::int32_t> offsets = {0, 3, 4};
      const auto x = t.normal({4, 19}), context = t.normal({2, 5});
      const auto expected = stack(plain, x, {offsets}, {}, {}, context);
      CHECK(largest_difference(stack(packed, x, {offsets}, {}, {}, context).value, expected.value) == 0);
    }
}

TEST_CASE("recurrent layers: steps in training have the gradients of the whole sequence") {
  for (const RecurrentCell cell : {RecurrentCell::gru, RecurrentCell::lstm}) {
    ParameterLayout layout;
    const RecurrentLayer layer(layout, "rnn", {.cell = cell, .input = 3, .width = 5, .context = 2});
    std::vector<Tensor<double>> found[2];
    std::vector<ParameterValues<double>> gradients(2, ParameterValues<double>(layout));
    ParameterValues<double> values(layout);
    values.initialise(1);
    for (double& x : values.flat()) x += 0.01;  // biases that are not zero
    Training<double> t;
    // Two sequences of three tokens, first token by token, then as a whole. Only the last state is used.
    const auto x = t.normal({6, 3}).value, context = t.normal({2, 2}).value, h = t.normal({2, 5}).value,
               c = t.normal({2, 5}).value, dy = t.normal({2, 5}).value;
    const std::vector<std::int32_t> offsets = {0, 3, 6};
    for (const std::size_t whole : {0, 1}) {
      Graph<double> graph(t.device, values, gradients[whole]);
      const auto inputs = std::array{graph.input(h, true), graph.input(c, true), graph.input(context, true)};
      RecurrentState<double> state{inputs[0], inputs[1]};
      if (whole) {
        state = layer(graph, graph.input(x), {offsets}, state, inputs[2]).last;
      } else {
        const auto context_gates = layer.project_context(graph, inputs[2]);
        for (int step = 0; step < 3; ++step) {
          const auto tokens = graph.input(t.arena.tensor<double>({2, 3}));
          for (int b = 0; b < 2; ++b) std::copy_n(x.row(3 * b + step), 3, tokens.value.row(b));
          state = layer.step(graph, tokens, state, context_gates);
        }
      }
      const auto loss = graph.result({});
      graph.record([state, dy](auto&) {
        std::copy_n(dy.data(), dy.size(), state.hidden.gradient.sum().data());
        if (state.cell) std::copy_n(dy.data(), dy.size(), state.cell.gradient.sum().data());
      });
      graph.backward(loss);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (i == 1 && cell == RecurrentCell::gru) continue;
        const Tensor<double> gradient = inputs[i].gradient.sum(), copy = t.arena.tensor<double>(gradient.shape());
        std::copy_n(gradient.data(), gradient.size(), copy.data());
        found[whole].push_back(copy);
      }
      for (const auto& info : layout.all()) found[whole].push_back(gradients[whole][layout.find(info.name)]);
    }
    REQUIRE(found[0].size() == found[1].size());
    for (std::size_t i = 0; i < found[0].size(); ++i) {
      CAPTURE(i);
      CHECK(largest_difference(found[0][i], found[1][i]) < 1e-12);
      CHECK(std::any_of(found[0][i].data(), found[0][i].data() + found[0][i].size(), [](double g) { return g != 0; }));
    }
  }
}

TEST_CASE("recurrent layers: names, order and initial values of the parameters") {
  ParameterLayout layout;
  const RecurrentStack stack(
      layout, "encoder",
      {.cell = RecurrentCell::lstm, .direction = Direction::both, .input = 24, .width = 16, .context = 8}, 2, 0.1);
  CHECK(stack.output_width() == 32);
  std::string text;
  ParameterValues<double> values(layout);
  values.initialise(1);
  for (const auto& info : layout.all()) {
    if (info.name.starts_with("encoder/layers/0")) text += info.name.substr(17) + " " + info.shape.text() + "\n";
    double largest = 0;
    for (const double x : values[layout.find(info.name)].span()) largest = std::max(largest, std::abs(x));
    CAPTURE(info.name);
    // Uniform in +-1 / sqrt(16); of at least 512 numbers, the largest one is close to the limit.
    CHECK(largest <= 0.25 * (1 + 1e-9));
    CHECK((info.shape.rank() == 1 ? largest == 0 : largest > 0.24));
  }
  CHECK(text ==
        "forward/input/weight [64, 24]\nbackward/input/weight [64, 24]\n"
        "forward/input/bias [64]\nbackward/input/bias [64]\n"
        "forward/context/weight [64, 8]\nbackward/context/weight [64, 8]\n"
        "forward/hidden/weight [64, 16]\nbackward/hidden/weight [64, 16]\n"
        "forward/hidden/bias [64]\nbackward/hidden/bias [64]\n");
  CHECK(layout[layout.find("encoder/layers/1/forward/input/weight")].shape == Shape{64, 32});
}

TEST_CASE("recurrent layers: dropout between the layers, in training only") {
  ParameterLayout layout;
  const RecurrentStack dropped(layout, "dropped", {.input = 4, .width = 8}, 2, 0.5);
  ParameterValues<float> values(layout), gradients(layout);
  values.initialise(1);
  Training<float> t;
  const std::vector<std::int32_t> offsets = {0, 3, 8};
  const auto x = t.normal({8, 4});
  Graph<float> training(t.device, values, gradients), inference(t.device, values);
  const auto once = dropped(training, x, {offsets}), twice = dropped(training, x, {offsets});
  CHECK(largest_difference(once.value, twice.value) > 0);
  const auto plain = dropped(inference, x, {offsets});
  CHECK(largest_difference(plain.value, dropped(inference, x, {offsets}).value) == 0);
  // The lowest layer's input and the highest layer's output are not dropped.
  const auto lowest = dropped[0](training, x, {offsets}).hidden;
  CHECK(largest_difference(lowest.value, dropped[0](inference, x, {offsets}).hidden.value) < 1e-6);
  for (const float y : once.value.span()) CHECK(y != 0);
}
