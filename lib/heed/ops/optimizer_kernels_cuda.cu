#include <cmath>

#include "heed/ops/optimizer_arguments.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Decides about an update (see decide_update()), by one thread.
__global__ void decide_kernel(const double* squared_norm, const float* loss, const std::uint8_t* finite,
                              double clip_norm, UpdateDecision* decision) {
  const double norm = std::sqrt(*squared_norm);
  // The product of 0 and a number that is not finite is NaN.
  if (!(norm * 0 == 0 && *loss * 0 == 0) || (finite && !*finite)) decision->given_up = 1;
  decision->gradient_norm = norm;
  decision->gradient_scale = clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1;
  decision->applied = decision->given_up == 0;
}

__device__ bool is_applied(const UpdateDecision* decision) {
  return !decision || decision->applied != 0;
}

/// Returns the factor of the gradient.
template <class T>
__device__ T scale_of(const UpdateDecision* decision, T of_settings) {
  return decision ? static_cast<T>(decision->gradient_scale) : of_settings;
}

/// Updates n parameters with Adam (see adam_update()).
template <class T>
__global__ void adam_kernel(T* value, const T* gradient, T* first, T* second, AdamNumbers<T> a, std::int64_t n,
                            const UpdateDecision* decision) {
  if (!is_applied(decision)) return;
  const T scale = scale_of(decision, a.gradient_scale);
  for_each_element(n, [&](std::int64_t i) {
    const T w = value[i], g = a.coupled_decay * w + scale * gradient[i];
    const T m = a.beta1 * first[i] + a.rest1 * g, v = a.beta2 * second[i] + a.rest2 * g * g;
    first[i] = m;
    second[i] = v;
    value[i] = w * a.keep - a.step_size * (m / (std::sqrt(v) * a.second_correction + a.epsilon));
  });
}

/// Updates n parameters with stochastic gradient descent (see sgd_update()). `velocity` may be null.
template <class T>
__global__ void sgd_kernel(T* value, const T* gradient, T* velocity, T rate, T momentum, T decay, T gradient_scale,
                           std::int64_t n, const UpdateDecision* decision) {
  if (!is_applied(decision)) return;
  const T scale = scale_of(decision, gradient_scale);
  for_each_element(n, [&](std::int64_t i) {
    const T w = value[i];
    T u = decay * w + scale * gradient[i];
    if (velocity) velocity[i] = u = momentum * velocity[i] + u;
    value[i] = w - rate * u;
  });
}

/// Computes to = beta * to + alpha * x.
template <class T>
__global__ void combine_kernel(T beta, T* to, T alpha, const T* x, std::int64_t n, const UpdateDecision* decision) {
  if (!is_applied(decision)) return;
  for_each_element(n, [&](std::int64_t i) { to[i] = beta * to[i] + alpha * x[i]; });
}

/// Moves n running averages towards means (see move_to_means()).
template <class T>
__global__ void means_kernel(T* average, const T* sums, double share, std::int64_t n, const UpdateDecision* decision) {
  const auto count = static_cast<double>(sums[n]);
  if (!is_applied(decision) || count <= 0) return;
  for_each_element(n, [&](std::int64_t i) {
    average[i] =
        static_cast<T>((1 - share) * static_cast<double>(average[i]) + share * (static_cast<double>(sums[i]) / count));
  });
}

template <class T>
__global__ void scale_kernel(T* x, T factor, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) { x[i] *= factor; });
}

/// What an element adds to the sum of squares.
struct Square {
  template <class T>
  __device__ double operator()(T x) const {
    return static_cast<double>(x) * static_cast<double>(x);
  }
};

/// Zero for a number that is finite, otherwise NaN, which stays in a sum.
struct ZeroIfFinite {
  template <class T>
  __device__ double operator()(T x) const {
    return static_cast<double>(x) * 0;
  }
};

/// Each block sums term(x[i]) over its elements: sums[block] = the sum. An element belongs to the same block and thread
/// every time.
template <class Term, class T>
__global__ void sum_kernel(const T* x, std::int64_t n, double* sums) {
  double sum = 0;
  for_each_element(n, [&](std::int64_t i) { sum += Term()(x[i]); });
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// Adds the sums of all blocks: *to = their sum or, with the type std::uint8_t, whether it is 0.
template <class To>
__global__ void finish_kernel(const double* sums, std::int64_t count, To* to) {
  double sum = 0;
  for_each_element(count, [&](std::int64_t i) { sum += sums[i]; });
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x != 0) return;
  if constexpr (std::is_same_v<To, double>)
    *to = sum;
  else
    *to = sum == 0;
}

/// Sums Term()(x[i]) over all elements of x, and computes *to from the sum (see finish_kernel()).
template <class Term, class T, class To>
void sum_terms(CudaContext& device, std::span<const T> x, To* to) {
  const ArenaScope scope(device.arena);
  const auto n = static_cast<std::int64_t>(x.size());
  LaunchShape shape = shape_for_elements(n);
  shape.shared_bytes = shape.threads / 32 * sizeof(double);
  double* const sums = device.arena.template tensor<double>({shape.blocks}).data();
  launch(device, shape, sum_kernel<Term, T>, x.data(), n, sums);
  launch(device, {1, shape.threads, shape.shared_bytes}, finish_kernel<To>, sums, shape.blocks, to);
}

}  // namespace

void decide_update(CudaContext& device, const double* squared_norm, const float* loss, const std::uint8_t* finite,
                   double clip_norm, UpdateDecision* decision) {
  launch(device, {1, 1}, decide_kernel, squared_norm, loss, finite, clip_norm, decision);
}

template <class T>
void adam_update(CudaContext& device, std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                 std::span<std::type_identity_t<T>> first_moment, std::span<std::type_identity_t<T>> second_moment,
                 const AdamUpdate& update) {
  const std::int64_t n =
      common_size("adam_update", value.size(), {gradient.size(), first_moment.size(), second_moment.size()});
  launch(device, shape_for_elements(n), adam_kernel<T>, value.data(), gradient.data(), first_moment.data(),
         second_moment.data(), AdamNumbers<T>(update), n, update.decision);
}

template <class T>
void sgd_update(CudaContext& device, std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                std::span<std::type_identity_t<T>> velocity, const SgdUpdate& update) {
  const std::int64_t n = common_size("sgd_update", value.size(), {gradient.size()});
  const bool moves = update.momentum != 0;
  if (moves) common_size("sgd_update", value.size(), {velocity.size()});
  launch(device, shape_for_elements(n), sgd_kernel<T>, value.data(), gradient.data(), moves ? velocity.data() : nullptr,
         static_cast<T>(update.learning_rate), static_cast<T>(update.momentum), static_cast<T>(update.weight_decay),
         static_cast<T>(update.gradient_scale), n, update.decision);
}

template <class T>
void squared_norm(CudaContext& device, std::span<const T> x, double* sum) {
  sum_terms<Square>(device, x, sum);
}

template <class T>
void add_to(CudaContext& device, std::span<T> y, std::span<const std::type_identity_t<T>> x) {
  const std::int64_t n = common_size("add_to", y.size(), {x.size()});
  launch(device, shape_for_elements(n), combine_kernel<T>, T(1), y.data(), T(1), x.data(), n, nullptr);
}

template <class T>
void scale_by(CudaContext& device, std::span<T> x, double factor) {
  const auto n = static_cast<std::int64_t>(x.size());
  launch(device, shape_for_elements(n), scale_kernel<T>, x.data(), static_cast<T>(factor), n);
}

template <class T>
void move_average(CudaContext& device, std::span<T> average, std::span<const std::type_identity_t<T>> x, double decay,
                  const UpdateDecision* decision) {
  const std::int64_t n = common_size("move_average", average.size(), {x.size()});
  launch(device, shape_for_elements(n), combine_kernel<T>, static_cast<T>(decay), average.data(),
         static_cast<T>(1 - decay), x.data(), n, decision);
}

template <class T>
void move_to_means(CudaContext& device, std::span<T> average, std::span<const std::type_identity_t<T>> sums,
                   double share, const UpdateDecision* decision) {
  const std::int64_t n = common_size("move_to_means", average.size() + 1, {sums.size()}) - 1;
  launch(device, shape_for_elements(n), means_kernel<T>, average.data(), sums.data(), share, n, decision);
}

template <class T>
void all_finite(CudaContext& device, std::span<const T> x, std::uint8_t* finite) {
  sum_terms<ZeroIfFinite>(device, x, finite);
}

#define HEED_INSTANTIATE(T)                                                                                   \
  template void adam_update(CudaContext&, std::span<T>, std::span<const T>, std::span<T>, std::span<T>,       \
                            const AdamUpdate&);                                                               \
  template void sgd_update(CudaContext&, std::span<T>, std::span<const T>, std::span<T>, const SgdUpdate&);   \
  template void squared_norm(CudaContext&, std::span<const T>, double*);                                      \
  template void add_to(CudaContext&, std::span<T>, std::span<const T>);                                       \
  template void scale_by(CudaContext&, std::span<T>, double);                                                 \
  template void move_average(CudaContext&, std::span<T>, std::span<const T>, double, const UpdateDecision*);  \
  template void move_to_means(CudaContext&, std::span<T>, std::span<const T>, double, const UpdateDecision*); \
  template void all_finite(CudaContext&, std::span<const T>, std::uint8_t*);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
