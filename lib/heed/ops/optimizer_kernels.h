#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

namespace heed {

// Loops over the flat arrays of ParameterValues. An element's result does not depend on where the array is cut, so
// several threads may each take a part. All arrays of a call have the size of the first.

/// What Adam needs to know of one update.
struct AdamUpdate {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;  ///< epsilon > 0: alignment gaps divide by it
  double weight_decay = 0;
  bool decoupled = false;     ///< weight decay as in AdamW; else it is added to the gradient
  std::int64_t step = 1;      ///< number of the update, from 1: corrects the moments' start at 0
  double gradient_scale = 1;  ///< multiplies the gradient first (clipping, averaging)
};

/// Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019):
/// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, w -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon).
template <class T>
void adam_update(std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                 std::span<std::type_identity_t<T>> first_moment, std::span<std::type_identity_t<T>> second_moment,
                 const AdamUpdate& update);

/// What gradient descent needs to know of one update.
struct SgdUpdate {
  double learning_rate = 0;
  double momentum = 0;
  double weight_decay = 0;    ///< times the value, added to the gradient
  double gradient_scale = 1;  ///< multiplies the gradient first
};

/// u = momentum u + g, w -= lr u (heavy ball). `velocity` (u) may be empty where momentum is 0.
template <class T>
void sgd_update(std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                std::span<std::type_identity_t<T>> velocity, const SgdUpdate& update);

/// Sum of squares in double, in an order that depends on the size alone (not on the CPU): element i goes to partial
/// sum i % 32.
template <class T>
double squared_norm(std::span<const T> x);

/// y += x: the sum of several workers' gradients.
template <class T>
void add_to(std::span<T> y, std::span<const std::type_identity_t<T>> x);

/// x *= factor.
template <class T>
void scale_by(std::span<T> x, double factor);

/// average = decay average + (1 - decay) x.
template <class T>
void move_average(std::span<T> average, std::span<const std::type_identity_t<T>> x, double decay);

/// Whether no element is infinite or not a number.
template <class T>
bool all_finite(std::span<const T> x);

}  // namespace heed
