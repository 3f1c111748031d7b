#pragma once

#include <cmath>
#include <initializer_list>
#include <string>

#include "heed/base/error.h"
#include "heed/ops/optimizer_kernels.h"

namespace heed {

/// The factors of one Adam update, computed from AdamUpdate before the loop over the parameters.
template <class T>
struct AdamNumbers {
  T gradient_scale;
  T coupled_decay;      ///< the weight decay that is added to the gradient
  T keep;               ///< 1 - learning_rate * weight_decay in AdamW, otherwise 1
  T beta1, rest1;       ///< rest1 = 1 - beta1
  T beta2, rest2;       ///< rest2 = 1 - beta2
  T second_correction;  ///< 1 / sqrt(1 - beta2^t)
  T epsilon;
  T step_size;  ///< learning_rate / (1 - beta1^t)

  explicit AdamNumbers(const AdamUpdate& update)
      : gradient_scale(static_cast<T>(update.gradient_scale)),
        coupled_decay(static_cast<T>(update.decoupled ? 0 : update.weight_decay)),
        keep(static_cast<T>(update.decoupled ? 1 - update.learning_rate * update.weight_decay : 1)),
        beta1(static_cast<T>(update.beta1)),
        rest1(static_cast<T>(1 - update.beta1)),
        beta2(static_cast<T>(update.beta2)),
        rest2(static_cast<T>(1 - update.beta2)),
        second_correction(static_cast<T>(1 / std::sqrt(1 - std::pow(update.beta2, static_cast<double>(update.step))))),
        epsilon(static_cast<T>(update.epsilon)),
        step_size(
            static_cast<T>(update.learning_rate / (1 - std::pow(update.beta1, static_cast<double>(update.step))))) {}
};

/// Returns the size `expected`, or throws Error where one of the `sizes` differs. `kernel` is the name of the function
/// that the error's message gives.
inline std::int64_t common_size(const char* kernel, std::size_t expected, std::initializer_list<std::size_t> sizes) {
  for (const std::size_t size : sizes)
    if (size != expected)
      throw Error(std::string("internal: ") + kernel + ": arrays of " + std::to_string(expected) + " and " +
                  std::to_string(size) + " elements");
  return static_cast<std::int64_t>(expected);
}

}  // namespace heed
