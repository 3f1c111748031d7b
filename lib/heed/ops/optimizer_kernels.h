#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "heed/tensor/context.h"

namespace heed {

// The loops of the optimisers over all parameters, which lie in one flat array (see ParameterValues). The result of an
// element does not depend on its place in the array, so several threads may each update a part of the parameters. All
// arrays of a call must have the same size; otherwise the function throws Error. The functions with a context as their
// first parameter work on arrays in the memory of the context's device.

/// The decision of a GPU about one update of the parameters: whether the update is applied, and by which factor the
/// gradient is multiplied. The decision is in the memory of the GPU, so that the host can launch the kernels of the
/// update before it knows the decision. Some kernels below receive a decision or null; if the decision says that the
/// update is not applied, the kernel changes nothing.
struct UpdateDecision {
  double gradient_norm = 0;
  double gradient_scale = 1;
  std::int32_t applied = 0;
  std::int32_t given_up = 0;  ///< whether this update or one before it was not finite: none is applied any more
};

/// Decides whether an update is applied, and writes the decision to `decision`. The update is applied if the loss is
/// finite, if the norm of the gradient is finite (`squared_norm` is the square of the norm), if *finite is not 0 (or
/// `finite` is null), and if no earlier update was given up. If `clip_norm` is above 0 and the norm is larger, the
/// gradient is scaled down to the norm `clip_norm`. All pointers point to the memory of the device.
void decide_update(CudaContext& device, const double* squared_norm, const float* loss, const std::uint8_t* finite,
                   double clip_norm, UpdateDecision* decision);

/// The settings of Adam and AdamW for one update of the parameters.
struct AdamUpdate {
  double learning_rate = 0;
  /// epsilon must be above 0: the flat array of parameters has unused gaps between parameters, where the update divides
  /// 0 by epsilon.
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  /// The weight decay: the factor of a parameter's value in the term that shrinks the value.
  double weight_decay = 0;
  /// true: the value itself is shrunk, as in AdamW; false: the value times weight_decay is added to the gradient.
  bool decoupled = false;
  /// The number t of this update, counted from 1. It corrects the moments, which begin at 0 and are too small at first.
  std::int64_t step = 1;
  /// The factor by which the gradient is multiplied before all else (for clipping and averaging).
  double gradient_scale = 1;
  /// On a GPU: what decides whether the update is applied, and whose factor takes the place of gradient_scale.
  const UpdateDecision* decision = nullptr;
};

/// Updates the parameters w (`value`) with Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019), from the
/// gradient g: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
/// w -= learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon), with m the first and v the second
/// moment.
template <class T>
void adam_update(std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                 std::span<std::type_identity_t<T>> first_moment, std::span<std::type_identity_t<T>> second_moment,
                 const AdamUpdate& update);
template <class T>
void adam_update(CudaContext& device, std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                 std::span<std::type_identity_t<T>> first_moment, std::span<std::type_identity_t<T>> second_moment,
                 const AdamUpdate& update);

/// The settings of stochastic gradient descent for one update of the parameters.
struct SgdUpdate {
  double learning_rate = 0;
  /// The factor by which the velocity of the previous update is multiplied.
  double momentum = 0;
  /// The factor of a parameter's value in the term that is added to the gradient.
  double weight_decay = 0;
  /// The factor by which the gradient is multiplied before all else (for clipping and averaging).
  double gradient_scale = 1;
  /// On a GPU: what decides whether the update is applied, and whose factor takes the place of gradient_scale.
  const UpdateDecision* decision = nullptr;
};

/// Updates the parameters w (`value`) with stochastic gradient descent and momentum (heavy ball), from the gradient g:
/// u = momentum u + g, w -= learning_rate u. The velocity u may be empty where momentum is 0.
template <class T>
void sgd_update(std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                std::span<std::type_identity_t<T>> velocity, const SgdUpdate& update);
template <class T>
void sgd_update(CudaContext& device, std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                std::span<std::type_identity_t<T>> velocity, const SgdUpdate& update);

/// Returns the sum of squares of x, computed in double. The order of the additions depends on the size of x alone, not
/// on the CPU: element i is added to the partial sum number i % 32, and the 32 partial sums are added at the end.
template <class T>
double squared_norm(std::span<const T> x);
/// Computes the sum of squares of x, in double, in the memory of the device. The order of the additions depends on the
/// size of x alone, and differs from that of the CPU.
template <class T>
void squared_norm(CudaContext& device, std::span<const T> x, double* sum);

/// Adds x to y, element by element: y += x. Training adds up the gradients of several threads by this function.
template <class T>
void add_to(std::span<T> y, std::span<const std::type_identity_t<T>> x);
template <class T>
void add_to(CudaContext& device, std::span<T> y, std::span<const std::type_identity_t<T>> x);

/// Multiplies each element of x by `factor`.
template <class T>
void scale_by(std::span<T> x, double factor);
template <class T>
void scale_by(CudaContext& device, std::span<T> x, double factor);

/// Updates an exponential moving average: average = decay * average + (1 - decay) * x, element by element.
template <class T>
void move_average(std::span<T> average, std::span<const std::type_identity_t<T>> x, double decay);
template <class T>
void move_average(CudaContext& device, std::span<T> average, std::span<const std::type_identity_t<T>> x, double decay,
                  const UpdateDecision* decision = nullptr);

/// Moves running averages by `share` towards the means of an update: average = (1 - share) * average + share * sum /
/// count, element by element. `sums` has a sum for each average, and behind them the count; a count of 0 changes
/// nothing.
template <class T>
void move_to_means(std::span<T> average, std::span<const std::type_identity_t<T>> sums, double share);
template <class T>
void move_to_means(CudaContext& device, std::span<T> average, std::span<const std::type_identity_t<T>> sums,
                   double share, const UpdateDecision* decision = nullptr);

/// Returns whether all elements of x are finite (no infinity, no NaN).
template <class T>
bool all_finite(std::span<const T> x);
/// Sets *finite, in the memory of the device, to 1 where all elements of x are finite, otherwise to 0.
template <class T>
void all_finite(CudaContext& device, std::span<const T> x, std::uint8_t* finite);

}  // namespace heed
