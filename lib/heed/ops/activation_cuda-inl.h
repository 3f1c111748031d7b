// The activation functions f of ops/linear.h and their derivatives, in kernels of GPUs. To be included after
// tensor/cuda_language.h.
#pragma once

#include <cmath>
#include <numbers>

#include "heed/ops/linear.h"
#include "heed/tensor/cuda_language.h"

namespace heed {

/// Returns the standard normal distribution function Phi(z).
template <class T>
__device__ __forceinline__ T normal_distribution(T z) {
  return T(0.5) * std::erfc(-z * T(std::numbers::sqrt2 / 2));
}

/// Returns 1 / (1 + exp(-z)).
template <class T>
__device__ __forceinline__ T sigmoid(T z) {
  return 1 / (1 + std::exp(-z));
}

/// Returns f(z).
template <class T>
__device__ __forceinline__ T activate(Activation activation, T z) {
  switch (activation) {
    case Activation::relu:
      return z > 0 ? z : T(0);
    case Activation::gelu:
      return z * normal_distribution(z);
    case Activation::swish:
      return z * sigmoid(z);
    case Activation::tanh:
      return std::tanh(z);
    case Activation::none:
      break;
  }
  return z;
}

/// Returns the derivative f'(z). `kept` is y = f(z) for relu and tanh, and z for gelu and swish.
template <class T>
__device__ __forceinline__ T activation_derivative(Activation activation, T kept) {
  switch (activation) {
    case Activation::relu:
      return kept > 0 ? T(1) : T(0);
    case Activation::gelu: {
      // The derivative of z Phi(z) is Phi(z) + z phi(z), where phi(z) = exp(-z^2 / 2) / sqrt(2 pi) is the density.
      const T density = std::exp(kept * kept * T(-0.5)) * T(0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
      return normal_distribution(kept) + kept * density;
    }
    case Activation::swish: {
      const T s = sigmoid(kept);
      return s + kept * s * (1 - s);
    }
    case Activation::tanh:
      return 1 - kept * kept;
    case Activation::none:
      break;
  }
  return 1;
}

/// Calls body(constant), where constant.value is the activation function, so that a loop within body() does not choose
/// the function again for each element.
template <class Body>
__device__ __forceinline__ void with_activation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::relu:
      return body(std::integral_constant<Activation, Activation::relu>());
    case Activation::gelu:
      return body(std::integral_constant<Activation, Activation::gelu>());
    case Activation::swish:
      return body(std::integral_constant<Activation, Activation::swish>());
    case Activation::tanh:
      return body(std::integral_constant<Activation, Activation::tanh>());
    case Activation::none:
      return body(std::integral_constant<Activation, Activation::none>());
  }
}

}  // namespace heed
