#include "heed/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "heed/ops/optimizer_kernels.h"

namespace heed {
namespace {

/// The longest warm-up, in updates, that is chosen if the user gives none (Vaswani et al. 2017).
constexpr double kLongestDefaultWarmup = 4000;
/// The warm-up that is chosen if the user gives none, as a fraction of the updates of the whole training.
constexpr double kDefaultWarmupShare = 0.1;
/// The default peak of the learning rate is computed as if the warm-up had at least this many updates: at higher
/// learning rates, models that normalise after each sublayer diverged (transformer-mini with a warm-up of 99 updates).
constexpr double kLeastWarmupInRate = 4000;
/// The default peak of the learning rate is lowered for a warm-up of fewer updates than this constant. With beta2 =
/// 0.98, Adam averages over 1 / (1 - beta2) = 50 updates, and transformer-base did not learn at the full peak after a
/// warm-up of 30 updates.
constexpr double kSafeWarmup = 100;

}  // namespace

void OptimizerOptions::validate() const {
  const bool sgd = optimizer == OptimizerKind::sgd;
  if (optimizer_params.size() > (sgd ? 1U : 3U))
    throw UsageError("--optimizer-params: " + std::string(enum_name(optimizer)) + " takes " +
                     (sgd ? "one value: momentum" : "three values: beta1 beta2 epsilon"));
  const auto may_be_factor = [](double value) { return value >= 0 && value < 1; };
  if (!std::ranges::all_of(optimizer_params | std::views::take(2), may_be_factor))
    throw UsageError("--optimizer-params: " + std::string(sgd ? "the momentum" : "beta1 and beta2") +
                     " must be at least 0 and below 1");
  if (optimizer_params.size() == 3 && !(optimizer_params[2] > 0))
    throw UsageError("--optimizer-params: epsilon must be above 0");
  // The update computes in float32, and would divide 0 by 0 where a gradient is 0.
  if (optimizer_params.size() == 3 && !(static_cast<float>(optimizer_params[2]) > 0))
    throw UsageError("--optimizer-params: epsilon must be at least 1e-45, because float32 has no smaller numbers");
}

void OptimizerOptions::set_default_rates(std::int64_t dim_emb, double planned_updates) {
  if (!lr_warmup)
    lr_warmup = lr_schedule == ScheduleKind::constant
                    ? 0
                    : static_cast<std::int64_t>(std::min(kLongestDefaultWarmup, kDefaultWarmupShare * planned_updates));
  if (learn_rate) return;
  if (optimizer == OptimizerKind::sgd) {
    learn_rate = 0.1;
    return;
  }
  // The default peak is the largest learning rate that equation 3 of Vaswani et al. 2017 reaches: 1 / sqrt(width x
  // warm-up). For short warm-ups the constants kLeastWarmupInRate and kSafeWarmup lower the peak.
  const double warmup = std::max(1.0, static_cast<double>(*lr_warmup));
  learn_rate = std::sqrt(std::min(1.0, warmup / kSafeWarmup) /
                         (static_cast<double>(dim_emb) * std::max(warmup, kLeastWarmupInRate)));
}

OptimizerSettings OptimizerOptions::resolve() const {
  OptimizerSettings out;
  out.kind = optimizer;
  const auto parameter = [&](std::size_t i, double otherwise) {
    return i < optimizer_params.size() ? optimizer_params[i] : otherwise;
  };
  if (optimizer == OptimizerKind::sgd) {
    out.momentum = parameter(0, out.momentum);
  } else {
    out.beta1 = parameter(0, out.beta1);
    out.beta2 = parameter(1, out.beta2);
    out.epsilon = parameter(2, out.epsilon);
  }
  out.weight_decay = weight_decay;
  out.clip_norm = clip_norm;
  out.schedule = {.kind = lr_schedule, .peak = learn_rate.value(), .warmup = lr_warmup.value()};
  return out;
}

template <class T>
BasicOptimizer<T>::BasicOptimizer(const OptimizerSettings& settings, const ParameterLayout& layout,
                                  NamedValues<T>& memory)
    : settings_(settings) {
  const auto keep = [&](const char* name) { return &memory.try_emplace(name, layout).first->second; };
  if (settings.kind != OptimizerKind::sgd) {
    first_ = keep("first_moment");
    second_ = keep("second_moment");
  } else if (settings.momentum > 0) {
    first_ = keep("velocity");
  }
}

/// Updates arrays in the memory of the host or, with a context, in that of a GPU.
template <class T>
template <class... Context>
void BasicOptimizer<T>::apply(std::span<T> value, std::span<const T> gradient, std::span<T> first, std::span<T> second,
                              const Step& step, Context&... device) const {
  if (settings_.kind == OptimizerKind::sgd) {
    sgd_update<T>(device..., value, gradient, first,
                  {.learning_rate = step.learning_rate,
                   .momentum = settings_.momentum,
                   .weight_decay = settings_.weight_decay,
                   .gradient_scale = step.gradient_scale,
                   .decision = step.decision});
    return;
  }
  adam_update<T>(device..., value, gradient, first, second,
                 {.learning_rate = step.learning_rate,
                  .beta1 = settings_.beta1,
                  .beta2 = settings_.beta2,
                  .epsilon = settings_.epsilon,
                  .weight_decay = settings_.weight_decay,
                  .decoupled = settings_.kind == OptimizerKind::adamw,
                  .step = step.number,
                  .gradient_scale = step.gradient_scale,
                  .decision = step.decision});
}

template <class T>
void BasicOptimizer<T>::update(ParameterValues<T>& parameters, const ParameterValues<T>& gradients, const Slice& slice,
                               const Step& step) const {
  const auto part = [&](ParameterValues<T>* values) { return values ? values->part(slice) : std::span<T>(); };
  apply(parameters.part(slice), gradients.part(slice), part(first_), part(second_), step);
}

#if HEED_HAS_CUDA
template <class T>
void BasicOptimizer<T>::update(CudaContext& device, std::span<T> parameters, std::span<const T> gradients,
                               std::span<T> first, std::span<T> second, const Step& step) const {
  apply(parameters, gradients, first, second, step, device);
}
#endif

template class BasicOptimizer<float>;
template class BasicOptimizer<double>;

double smoothing_decay(double rate, std::int64_t step) {
  const auto t = static_cast<double>(step);
  return std::min(1 - rate, (t + 1) / (t + 10));
}

}  // namespace heed
