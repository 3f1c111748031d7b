#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/autograd/graph.h"

namespace heed {

/// What a gradient check found: the largest relative error over all inputs, and where.
struct GradientCheck {
  double worst = 0;   ///< |analytic - numeric| / max(1, |analytic|, |numeric|)
  std::string where;  ///< "input 1 element 7: analytic 0.5, numeric 0.4"
};

/// Compares the gradients of an op with central finite differences in double. `op` gets one tracked variable for each
/// shape (values drawn from a standard normal by `seed`) and returns any tensor; its random projection to a scalar is
/// differentiated by every element of every input. Dropout in `op` sees the same random numbers in every evaluation.
GradientCheck check_gradients(const std::vector<Shape>& inputs,
                              const std::function<Variable<double>(Graph<double>&, std::vector<Variable<double>>&)>& op,
                              std::uint64_t seed = 1, double step = 1e-5);

}  // namespace heed
