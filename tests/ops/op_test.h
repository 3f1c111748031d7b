#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "heed/autograd/gradient_check.h"
#include "test_device.h"

namespace heed {

/// Checks the gradients of an op in double against finite differences. `bound` is the largest error allowed; its
/// default is the accuracy of central differences with steps of 1e-5.
inline void require_gradients(const std::vector<Shape>& inputs,
                              const std::function<Variable<double>(Graph<double>&, std::vector<Variable<double>>&)>& op,
                              double bound = 1e-8) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    TestDevice device;
    const GradientCheck check = check_gradients(device, inputs, op, seed);
    INFO("seed ", seed, ": ", check.where);
    CHECK(check.worst < bound);
  }
}

}  // namespace heed
