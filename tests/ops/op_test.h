#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "heed/autograd/gradient_check.h"
#include "test_device.h"

namespace heed {

/// Checks the gradients of an op in double: on a CPU against finite differences, and on a GPU against those on a CPU.
/// `bound` is the largest error allowed; its default is the accuracy of central differences with steps of 1e-5.
inline void require_gradients(const std::vector<Shape>& inputs, const OpUnderTest& op, double bound = 1e-8) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    TestDevice device;
    const GradientCheck check =
        kTestsGpu ? compare_gradients(device, inputs, op, seed) : check_gradients(inputs, op, seed);
    INFO("seed ", seed, ": ", check.where);
    CHECK(check.worst < bound);
  }
}

/// Returns a tensor without a gradient in the memory of a graph's device, whose element i is value(i).
template <class Value>
Variable<double> constant(Graph<double>& graph, const Shape& shape, const Value& value) {
  const Tensor<double> host = graph.host_arena().tensor<double>(shape);
  for (std::int64_t i = 0; i < host.size(); ++i) host[i] = value(i);
  return graph.input(graph.device().upload(host));
}
inline Variable<double> zeros(Graph<double>& graph, const Shape& shape) {
  return constant(graph, shape, [](std::int64_t) { return 0.0; });
}

}  // namespace heed
