#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/autograd/graph.h"

namespace heed {

/// The result of a gradient check: the largest relative error over all elements of all inputs.
struct GradientCheck {
  double worst = 0;   ///< the largest relative error: |found - expected| / max(1, |found|, |expected|)
  std::string where;  ///< the element with the largest error: "input 1 element 7: 0.5, expected 0.4"

  /// Takes an element of an input's gradient into account. A NaN counts as the largest error.
  void compare(std::size_t input, std::int64_t element, double found, double expected);
};

/// An op under test: receives a variable for each input, and returns a tensor of any shape. The checks below multiply
/// the elements of the tensor by fixed random numbers, sum them, and differentiate the sum with respect to every
/// element of every input. The inputs have values drawn from a standard normal distribution by a seed. Dropout within
/// the op draws the same random numbers in every evaluation.
using OpUnderTest = std::function<Variable<double>(Graph<double>&, std::vector<Variable<double>>&)>;

/// Compares the gradients of an op on a CPU, which backward() computes, with central finite differences in double.
/// `inputs` are the shapes of the inputs, and `step` is the distance of the finite differences.
GradientCheck check_gradients(const std::vector<Shape>& inputs, const OpUnderTest& op, std::uint64_t seed = 1,
                              double step = 1e-5);

/// Compares the gradients of an op on another device with those on a CPU.
GradientCheck compare_gradients(Device device, const std::vector<Shape>& inputs, const OpUnderTest& op,
                                std::uint64_t seed = 1);

}  // namespace heed
