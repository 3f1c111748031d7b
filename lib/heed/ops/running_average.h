// The two running averages over the earlier positions of a sequence that can take the place of a decoder's
// self-attention: a state of D numbers holds all that a position needs of the positions before it.
//
// Let x_t be the input at position t = 1, 2, ... of a sequence, c_t the state after the position, and c_0 = 0. Element
// by element,
//
//   mean        c_t = c_(t-1) + (x_t - c_(t-1)) / t         y_t = c_t, the mean of x_1 ... x_t
//               (average attention network, Zhang et al. 2018, equation 1)
//   recurrent   c_t = f_t c_(t-1) + (1 - f_t) x_t           y_t = max(0, c_t)
//               with f_t = sigmoid(z_t), where z_t is a second input
//               (SSRU, Kim et al. 2019, section 3.2)
//
// Example: the inputs 6, 2, 4 have the means 6, 4, 4.
#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"
#include "heed/tensor/packed.h"

namespace heed {

/// Computes the mean of x over each position and the positions before it, in each sequence of a packed batch.
///
/// Shapes: x [N, D] -> y [N, D]. Saved for the backward pass: nothing. Backward: dx_s += sum over t >= s of dy_t / t.
template <class T>
Variable<T> running_mean(Graph<T>& graph, const Variable<T>& x, PackedOffsets packed);

/// Computes the simpler simple recurrent unit (SSRU) over each sequence of a packed batch.
///
/// Shapes: gates [N, 2D] -> y [N, D]. A row of `gates` is x_t and, after it, z_t.
/// Saved for the backward pass: gates and c [N, D]; not y. Backward, from the last position to the first, with
/// g_t = dy_t [c_t > 0] + f_(t+1) g_(t+1): dx_t += (1 - f_t) g_t, dz_t += (c_(t-1) - x_t) f_t (1 - f_t) g_t.
template <class T>
Variable<T> simple_recurrence(Graph<T>& graph, const Variable<T>& gates, PackedOffsets packed);

/// One position of one hypothesis in step-by-step decoding: where its state is, and the state before it.
template <class T>
struct StateStep {
  const T* before = nullptr;  ///< c_(t-1) [D]; null at the first position
  T* after = nullptr;         ///< c_t [D], which the step computes
  std::int32_t position = 1;  ///< t, from 1
};

/// Computes one position of running_mean() for each of R rows, one row after the other, so that the state before a row
/// may be the state after the row just before it. The states are in the memory of the device, and the array `steps` in
/// that of the host. Shapes: x [R, D] -> y [R, D]. A row has the bits that running_mean() gives.
template <class T>
void running_mean_step(CpuContext& device, Tensor<T> x, std::span<const StateStep<T>> steps, Tensor<T> y);
template <class T>
void running_mean_step(CudaContext& device, Tensor<T> x, std::span<const StateStep<T>> steps, Tensor<T> y);
/// Computes one position of simple_recurrence() for each of R rows, one row after the other (see running_mean_step()).
/// Shapes: gates [R, 2D] -> y [R, D]. A row has the bits that simple_recurrence() gives.
template <class T>
void simple_recurrence_step(CpuContext& device, Tensor<T> gates, std::span<const StateStep<T>> steps, Tensor<T> y);
template <class T>
void simple_recurrence_step(CudaContext& device, Tensor<T> gates, std::span<const StateStep<T>> steps, Tensor<T> y);

/// Computes the gradient of running_mean(): adds to dx. Shapes: dy, dx [N, D].
template <class T>
void running_mean_backward(CpuContext& device, PackedOffsets packed, Tensor<T> dy, Tensor<T> dx);
template <class T>
void running_mean_backward(CudaContext& device, PackedOffsets packed, Tensor<T> dy, Tensor<T> dx);
/// Computes the gradient of simple_recurrence(): adds to dgates. Shapes: gates, dgates [N, 2D], states, dy [N, D].
template <class T>
void simple_recurrence_backward(CpuContext& device, PackedOffsets packed, Tensor<T> gates, Tensor<T> states,
                                Tensor<T> dy, Tensor<T> dgates);
template <class T>
void simple_recurrence_backward(CudaContext& device, PackedOffsets packed, Tensor<T> gates, Tensor<T> states,
                                Tensor<T> dy, Tensor<T> dgates);

}  // namespace heed
