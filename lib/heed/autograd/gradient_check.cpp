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

}  // namespace

GradientCheck check_gradients(const std::vector<Shape>& shapes,
                              const std::function<Variable<double>(Graph<double>&, std::vector<Variable<double>>&)>& op,
                              std::uint64_t seed, double step) {
  Arena arena;
  CpuContext context{arena};
  return check_gradients(context, shapes, op, seed, step);
}

GradientCheck check_gradients(Device device, const std::vector<Shape>& shapes,
                              const std::function<Variable<double>(Graph<double>&, std::vector<Variable<double>>&)>& op,
                              std::uint64_t seed, double step) {
  // The inputs of the op under test are parameters here, because gradients of parameters stay valid after the next
  // graph.reset().
  ParameterLayout layout;
  std::vector<ParameterId> ids;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    ids.push_back(layout.add("input" + std::to_string(i), shapes[i], Initialiser::normal(1)));
  ParameterValues<double> values(layout), gradients(layout);
  values.initialise(seed);
  const DeviceParameters<double> device_values(device, values), device_gradients(device, gradients);
  Graph<double> graph(device, device_values.view(), device_gradients.view());
  const RandomStream weights(seed, RandomUse::sampling);
  const auto evaluate = [&](bool backward) {
    device_values.put();
    graph.reset();
    graph.set_dropout({seed, 1});
    std::vector<Variable<double>> inputs;
    for (const ParameterId id : ids) inputs.push_back(graph.parameter(id));
    double sum = 0;
    const Variable<double> loss = project(graph, op(graph, inputs), weights, sum);
    if (backward) graph.backward(loss);
    return sum;
  };
  evaluate(true);
  device_gradients.get();
  ParameterValues<double> analytic = gradients;
  GradientCheck found;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Tensor<double> value = values[ids[i]];
    for (std::int64_t j = 0; j < value.size(); ++j) {
      const double kept = value[j];
      value[j] = kept + step;
      const double above = evaluate(false);
      value[j] = kept - step;
      const double below = evaluate(false);
      value[j] = kept;
      const double numeric = (above - below) / (2 * step), exact = analytic[ids[i]][j];
      const double error = std::abs(exact - numeric) / std::max({1.0, std::abs(exact), std::abs(numeric)});
      if (!(error <= found.worst)) {  // the condition is also true if `error` is NaN
        found.worst = error;
        found.where = "input " + std::to_string(i) + " element " + std::to_string(j) + ": analytic " +
                      std::to_string(exact) + ", numeric " + std::to_string(numeric);
      }
    }
  }
  return found;
}

}  // namespace heed
