#include "heed/autograd/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "heed/autograd/device_parameters.h"

namespace heed {
namespace {

/// Returns the scalar that the gradient check differentiates: the sum of the elements of x, each multiplied by a fixed
/// random number from the stream `weights`. `sum` receives it.
Variable<double> project(Graph<double>& graph, const Variable<double>& x, const RandomStream& weights, double& sum) {
  const Variable<double> out = graph.result({});
  const Tensor<double> value = graph.device().download(x.value);
  sum = 0;
  for (std::int64_t i = 0; i < value.size(); ++i) sum += weights.normal(static_cast<std::uint64_t>(i)) * value[i];
  graph.record([x, out, weights](auto& context) {
    const Device device(context);
    const double arrived = device.read(out.gradient.sum());
    const Tensor<double> dx = device.download(x.gradient.sum());
    for (std::int64_t i = 0; i < x.value.size(); ++i) dx[i] += arrived * weights.normal(static_cast<std::uint64_t>(i));
    device.put(dx, x.gradient.sum());
  });
  return out;
}

/// Returns an element of the parameter that stands for input number i.
double element(const ParameterValues<double>& values, std::size_t i, std::int64_t j) {
  return values.flat()[static_cast<std::size_t>(values.layout()[ParameterId{static_cast<int>(i)}].offset + j)];
}

/// An op as a function of its inputs, which are parameters here, because gradients of parameters stay valid after the
/// next graph.reset().
class FunctionOfInputs {
 public:
  FunctionOfInputs(Device device, const std::vector<Shape>& shapes, const OpUnderTest& op, std::uint64_t seed)
      : op_(op),
        seed_(seed),
        layout_(layout_of(shapes)),
        device_values_(device, initialised(values_, seed)),
        device_gradients_(device, gradients_),
        graph_(device, device_values_.view(), device_gradients_.view()),
        weights_(seed, RandomUse::sampling) {}

  std::size_t inputs() const { return layout_.all().size(); }
  /// Returns the elements of input number i, which may be changed.
  Tensor<double> input(std::size_t i) { return values_[ParameterId{static_cast<int>(i)}]; }
  /// Returns the scalar that project() computes.
  double value() { return evaluate(false); }
  /// Returns the gradients of all inputs.
  ParameterValues<double> gradients() {
    evaluate(true);
    device_gradients_.get();
    return gradients_;
  }

 private:
  static ParameterLayout layout_of(const std::vector<Shape>& shapes) {
    ParameterLayout layout;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      layout.add("input" + std::to_string(i), shapes[i], Initialiser::normal(1));
    return layout;
  }
  static ParameterValues<double>& initialised(ParameterValues<double>& values, std::uint64_t seed) {
    values.initialise(seed);
    return values;
  }

  double evaluate(bool backward) {
    device_values_.put();
    graph_.reset();
    graph_.set_dropout({seed_, 1});
    std::vector<Variable<double>> variables;
    for (std::size_t i = 0; i < inputs(); ++i) variables.push_back(graph_.parameter({static_cast<int>(i)}));
    double sum = 0;
    const Variable<double> loss = project(graph_, op_(graph_, variables), weights_, sum);
    if (backward) graph_.backward(loss);
    return sum;
  }

  const OpUnderTest& op_;
  std::uint64_t seed_;
  ParameterLayout layout_;
  ParameterValues<double> values_{layout_}, gradients_{layout_};
  DeviceParameters<double> device_values_, device_gradients_;
  Graph<double> graph_;
  RandomStream weights_;
};

}  // namespace

GradientCheck check_gradients(const std::vector<Shape>& shapes, const OpUnderTest& op, std::uint64_t seed,
                              double step) {
  Arena arena;
  CpuContext device{arena};
  FunctionOfInputs function(device, shapes, op, seed);
  const ParameterValues<double> exact = function.gradients();
  GradientCheck found;
  for (std::size_t i = 0; i < function.inputs(); ++i) {
    const Tensor<double> value = function.input(i);
    for (std::int64_t j = 0; j < value.size(); ++j) {
      const double kept = value[j];
      value[j] = kept + step;
      const double above = function.value();
      value[j] = kept - step;
      const double below = function.value();
      value[j] = kept;
      found.compare(i, j, element(exact, i, j), (above - below) / (2 * step));
    }
  }
  return found;
}

GradientCheck compare_gradients(Device device, const std::vector<Shape>& shapes, const OpUnderTest& op,
                                std::uint64_t seed) {
  Arena arena;
  CpuContext cpu{arena};
  const ParameterValues<double> expected = FunctionOfInputs(cpu, shapes, op, seed).gradients(),
                                on_device = FunctionOfInputs(device, shapes, op, seed).gradients();
  GradientCheck found;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (std::int64_t j = 0; j < shapes[i].size(); ++j)
      found.compare(i, j, element(on_device, i, j), element(expected, i, j));
  return found;
}

void GradientCheck::compare(std::size_t input, std::int64_t element, double found, double expected) {
  const double error = std::abs(found - expected) / std::max({1.0, std::abs(found), std::abs(expected)});
  if (error <= worst || std::isnan(worst)) return;  // NaN comes through, and stays
  worst = error;
  where = "input " + std::to_string(input) + " element " + std::to_string(element) + ": " + std::to_string(found) +
          ", expected " + std::to_string(expected);
}

}  // namespace heed
