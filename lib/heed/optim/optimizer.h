#pragma once

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

namespace heed {

enum class OptimizerKind { adam, adamw, sgd };

template <>
struct EnumNames<OptimizerKind> {
  static constexpr std::pair<OptimizerKind, std::string_view> values[] = {
      {OptimizerKind::adam, "adam"}, {OptimizerKind::adamw, "adamw"}, {OptimizerKind::sgd, "sgd"}};
};

/// An optimiser and its learning rate, complete.
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::adam;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;  ///< of adam and adamw
  double momentum = 0;                               ///< of sgd
  double weight_decay = 0;
  double clip_norm = 0;  ///< largest norm of the gradient of all parameters; 0: no limit
  Schedule schedule = {};
};

/// The options of `train` about the optimiser.
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
    visit(optimizer, {.name = "optimizer", .help = "how the gradient changes the parameters"});
    visit(optimizer_params, {.name = "optimizer-params",
                             .help = "adam and adamw: beta1 beta2 epsilon (0.9 0.98 1e-9); sgd: momentum (0)",
                             .value = "X",
                             .min = 0,
                             .max = 1});
    visit(learn_rate, {.name = "learn-rate",
                       .help = "learning rate at its peak; else 1 / sqrt(width x warm-up, at least 4000), sgd 0.1",
                       .value = "X",
                       .letter = 'l',
                       .min = 0});
    visit(lr_warmup, {.name = "lr-warmup",
                      .help = "updates until the peak; else a tenth of --after, at most 4000; constant schedule 0",
                      .value = "N",
                      .min = 0});
    visit(lr_schedule, {.name = "lr-schedule", .help = "the learning rate after its peak"});
    visit(clip_norm,
          {.name = "clip-norm", .help = "scale a gradient down to this norm; 0: never", .value = "X", .min = 0});
    visit(weight_decay, {.name = "weight-decay",
                         .help = "pull parameters to 0: adamw by rate x this, others through the gradient",
                         .value = "X",
                         .min = 0});
  }

  /// Throws UsageError where optimizer_params has too many values or an impossible one.
  void validate() const;

  /// Sets learn_rate and lr_warmup where no option has. The warm-up is a tenth of the `planned_updates` of the whole
  /// training, and at most the paper's 4,000. The peak is the paper's for that warm-up and a model of width `dim_emb`,
  /// but never more than for a warm-up of 4,000 (Vaswani et al. 2017, equation 3); where the warm-up is shorter than 100
  /// updates, the peak is multiplied by sqrt(warm-up / 100).
  void set_default_rates(std::int64_t dim_emb, double planned_updates);

  /// Returns the settings of options that validate() accepts, after set_default_rates().
  OptimizerSettings resolve() const;
};

/// Arrays laid out like a model's parameters, by name.
using NamedParameterValues = std::map<std::string, ParameterValues<float>>;

/// Changes parameters by their gradient. What it must remember from one update to the next lies in arrays that the
/// caller owns and stores: first_moment and second_moment (adam, adamw), velocity (sgd with momentum).
class Optimizer {
 public:
  /// Adds the arrays it needs to `memory` where they are missing, as zeros. `memory` must outlive the optimiser.
  Optimizer(const OptimizerSettings& settings, const ParameterLayout& layout, NamedParameterValues& memory);

  struct Step {
    double learning_rate = 0;
    std::int64_t number = 1;    ///< from 1
    double gradient_scale = 1;  ///< multiplies the gradient first
  };
  /// One update of the elements in `slice` of the flat arrays; several threads may each take a slice.
  void update(ParameterValues<float>& parameters, const ParameterValues<float>& gradients, const Slice& slice,
              const Step& step) const;

  const OptimizerSettings& settings() const { return settings_; }

 private:
  OptimizerSettings settings_;
  ParameterValues<float>*first_ = nullptr, *second_ = nullptr;
};

/// How much of the smoothed parameters stays at update `step` (from 1) where `rate` of the new ones goes in: at first
/// less, so that the start is forgotten soon.
double smoothing_decay(double rate, std::int64_t step);

}  // namespace heed
