#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/autograd/parameters.h"
#include "heed/base/threads.h"
#include "heed/config/fields.h"
#include "heed/optim/schedule.h"
#include "heed/tensor/device.h"

namespace heed {

struct UpdateDecision;

/// The optimisers: Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019), stochastic gradient descent.
enum class OptimizerKind { adam, adamw, sgd };

template <>
struct EnumNames<OptimizerKind> {
  static constexpr std::pair<OptimizerKind, std::string_view> values[] = {
      {OptimizerKind::adam, "adam"}, {OptimizerKind::adamw, "adamw"}, {OptimizerKind::sgd, "sgd"}};
};

/// The complete settings of an optimiser and of the learning rate: every option has a value, which the user gave or
/// heed has chosen.
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::adam;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;  ///< parameters of adam and adamw
  double momentum = 0;                               ///< parameter of sgd; 0: no momentum
  double weight_decay = 0;
  /// The largest norm allowed for the gradient of all parameters together: a gradient with a larger norm is scaled down
  /// to this norm. 0: no limit.
  double clip_norm = 0;
  Schedule schedule = {};
};

/// The options of `train` that configure the optimiser and the learning rate.
struct OptimizerOptions {
  OptimizerKind optimizer = OptimizerKind::adam;
  std::vector<double> optimizer_params;
  std::optional<double> learn_rate;
  std::optional<std::int64_t> lr_warmup;
  ScheduleKind lr_schedule = ScheduleKind::inverse_sqrt;
  double clip_norm = 1;
  double weight_decay = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Optimisation");
    visit(optimizer, {.name = "optimizer", .help = "algorithm that updates the parameters"});
    visit(optimizer_params, {.name = "optimizer-params",
                             .help = "adam and adamw: beta1 beta2 epsilon (0.9 0.98 1e-9); sgd: momentum (0)",
                             .value = "X",
                             .min = 0,
                             .max = 1});
    visit(learn_rate, {.name = "learn-rate",
                       .help = "peak learning rate (if not given: 1 / sqrt(width x warm-up, at least 4000), sgd 0.1)",
                       .value = "X",
                       .letter = 'l',
                       .min = 0});
    visit(lr_warmup,
          {.name = "lr-warmup",
           .help = "updates until the peak (if not given: a tenth of --after, at most 4000; constant schedule 0)",
           .value = "N",
           .min = 0});
    visit(lr_schedule, {.name = "lr-schedule", .help = "course of the learning rate after its peak"});
    visit(clip_norm, {.name = "clip-norm",
                      .help = "scale a gradient with a larger norm down to norm X; 0: never",
                      .value = "X",
                      .min = 0});
    visit(weight_decay, {.name = "weight-decay",
                         .help = "pull parameters to 0: adamw by learning rate x X, the others through the gradient",
                         .value = "X",
                         .min = 0});
  }

  /// Throws UsageError if optimizer_params has too many values for the optimiser, or a value that is out of range.
  void validate() const;

  /// Sets lr_warmup and learn_rate if the user did not give them. The warm-up is a tenth of `planned_updates`, the
  /// number of updates of the whole training, and at most 4,000 as in Vaswani et al. 2017; it is 0 for a constant
  /// learning rate. learn_rate, the peak, is 1 / sqrt(dim_emb x warm-up), but at most the peak for a warm-up of 4,000
  /// (Vaswani et al. 2017, equation 3); if the warm-up is shorter than 100 updates, the peak is multiplied by
  /// sqrt(warm-up / 100). The peak is 0.1 for sgd. `dim_emb` is the model's width in columns.
  void set_default_rates(std::int64_t dim_emb, double planned_updates);

  /// Returns the complete settings of the optimiser and of the learning rate. The caller must have called validate()
  /// and set_default_rates() before.
  OptimizerSettings resolve() const;
};

/// The state of an optimiser, as a checkpoint stores it: arrays by name, each with one element for each element of the
/// model's parameters.
template <class T>
using NamedValues = std::map<std::string, ParameterValues<T>>;
using NamedParameterValues = NamedValues<float>;

/// Updates parameters from their gradients. The optimiser keeps its state between updates in arrays that the caller
/// owns and saves in checkpoints: first_moment and second_moment (adam, adamw), velocity (sgd with momentum). Models
/// have parameters of type float; an optimiser of type double serves functions of few parameters.
template <class T>
class BasicOptimizer {
 public:
  /// Creates an optimiser whose state is in the arrays of `memory`. Adds the arrays of the state to `memory`, filled
  /// with zeros, if `memory` does not contain them. `memory` must outlive the optimiser.
  BasicOptimizer(const OptimizerSettings& settings, const ParameterLayout& layout, NamedValues<T>& memory);

  /// The numbers that change from one update of the parameters to the next.
  struct Step {
    double learning_rate = 0;
    std::int64_t number = 1;    ///< number of the update, counted from 1, for the bias correction of Adam
    double gradient_scale = 1;  ///< factor by which the gradient is multiplied before the update (gradient clipping)
    const UpdateDecision* decision = nullptr;  ///< on a GPU: has the factor, and whether the update is applied
  };
  /// Performs one update of a part of the parameters: the elements in `slice` of the flat arrays of parameters and
  /// gradients. Several threads may call update() for different slices of the same update.
  void update(ParameterValues<T>& parameters, const ParameterValues<T>& gradients, const Slice& slice,
              const Step& step) const;

#if HEED_HAS_CUDA
  /// Performs one update of parameters in the memory of a GPU. `first` and `second` are copies of the arrays that
  /// memory() returns.
  void update(CudaContext& device, std::span<T> parameters, std::span<const T> gradients, std::span<T> first,
              std::span<T> second, const Step& step) const;
#endif

  const OptimizerSettings& settings() const {
    return settings_;
  }
  /// Returns the two arrays that hold the state of the optimiser; null where it does not need one.
  std::array<ParameterValues<T>*, 2> memory() const {
    return {first_, second_};
  }

 private:
  template <class... Context>
  void apply(std::span<T> value, std::span<const T> gradient, std::span<T> first, std::span<T> second, const Step& step,
             Context&... device) const;

  OptimizerSettings settings_;
  // Pointers to the arrays of the caller that hold the state of the optimiser: first_ is first_moment or velocity,
  // second_ is second_moment. A pointer is null if the optimiser does not need the array.
  ParameterValues<T>*first_ = nullptr, *second_ = nullptr;
};

extern template class BasicOptimizer<float>;
extern template class BasicOptimizer<double>;
using Optimizer = BasicOptimizer<float>;

/// Returns the factor d of exponential smoothing, smoothed <- d smoothed + (1 - d) parameters, at update `step`
/// (counted from 1): min(1 - rate, (step + 1) / (step + 10)). d is smaller in the first updates, so that the smoothed
/// parameters soon forget the random initial values.
double smoothing_decay(double rate, std::int64_t step);

}  // namespace heed
