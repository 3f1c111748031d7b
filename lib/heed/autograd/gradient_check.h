#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/autograd/graph.h"

namespace heed {

/// The result of a gradient check: the largest relative error over all elements of all inputs.
struct GradientCheck {
  double worst = 0;   ///< the largest relative error: |analytic - numeric| / max(1, |analytic|, |numeric|)
  std::string where;  ///< the element with the largest error: "input 1 element 7: analytic 0.5, numeric 0.4"
};

/// Compares the gradients of an op, which backward() computes, with central finite differences in double. `op` receives
/// one variable for each shape in `inputs`, with values drawn from a standard normal distribution by `seed`, and
/// returns a tensor of any shape. The check multiplies the elements of the tensor by fixed random numbers, sums them,
/// and differentiates the sum with respect to every element of every input; `step` is the distance of the finite
/// differences. Dropout within `op` draws the same random numbers in every evaluation. `op` runs on `device`, or on a
/// CPU.
GradientCheck check_gradients(Device device, const std::vector<Shape>& inputs,
                              const std::function<Variable<double>(Graph<double>&, std::vector<Variable<double>>&)>& op,
                              std::uint64_t seed = 1, double step = 1e-5);
GradientCheck check_gradients(const std::vector<Shape>& inputs,
                              const std::function<Variable<double>(Graph<double>&, std::vector<Variable<double>>&)>& op,
                              std::uint64_t seed = 1, double step = 1e-5);

}  // namespace heed
