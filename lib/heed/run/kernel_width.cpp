#include "heed/run/kernel_width.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"
#include "heed/nn/kernel_pooling.h"

namespace heed {
namespace {

/// The largest number of distances for which the loss is computed at once.
constexpr std::size_t kDistancesAtOnce = std::size_t{1} << 18;

/// Computes the leave-one-out loss of all pairs as a function of w, and updates w from the gradient.
class Learner {
 public:
  Learner(std::span<const double> x, std::span<const double> y, double w, const OptimizerSettings& settings)
      : x_(x), y_(y), optimizer_(settings, layout_, memory_) {
    values_[pooling_.w()][0] = w;
  }

  double w() { return values_[pooling_.w()][0]; }

  /// Returns the loss for the present w, and computes the gradient for update().
  double loss() {
    gradients_.fill_zero();
    const std::size_t rows = std::max<std::size_t>(1, kDistancesAtOnce / x_.size());
    double loss = 0;
    for (std::size_t begin = 0; begin < x_.size(); begin += rows) {
      graph_.reset();
      const Variable<double> part =
          leave_one_out_loss(graph_, pooling_, x_, y_, begin, std::min(rows, x_.size() - begin));
      loss += part.value[0];
      graph_.backward(part);
    }
    return loss;
  }

  void update(double learning_rate, std::int64_t number) {
    optimizer_.update(values_, gradients_, {0, layout_.storage_size()}, {learning_rate, number, 1});
  }

 private:
  std::span<const double> x_, y_;
  ParameterLayout layout_;
  GaussianPooling pooling_{layout_, "pooling"};
  ParameterValues<double> values_{layout_, PageSize::small}, gradients_{layout_, PageSize::small};
  NamedValues<double> memory_;
  BasicOptimizer<double> optimizer_;
  Arena arena_;
  CpuContext device_{arena_};
  Graph<double> graph_{device_, values_, gradients_};
};

}  // namespace

std::vector<WidthStep> learn_width(std::span<const double> x, std::span<const double> y, double start,
                                   std::int64_t epochs, const OptimizerSettings& settings, Log& log) {
  Learner learner(x, y, start, settings);
  std::vector<WidthStep> steps;
  Progress progress(log, "learning", "epochs", epochs);
  for (std::int64_t epoch = 0;; ++epoch) {
    const WidthStep step{learner.w(), learner.loss()};
    steps.push_back(step);
    log.detail("epoch " + std::to_string(epoch) + ": w " + fields_detail::show_real(step.w) + ", loss " +
               fields_detail::show_real(step.loss));
    // With a larger w, w^2 times a distance would be infinite.
    if (!(std::abs(step.w) <= kLargestKey) || !std::isfinite(step.loss))
      throw Error("learning diverged in epoch " + std::to_string(epoch) +
                  " (lower --learn-rate, or divide the numbers y by a constant)");
    progress.to(epoch);
    if (epoch == epochs) return steps;
    learner.update(settings.schedule.rate(epoch + 1, static_cast<double>(epoch) / static_cast<double>(epochs)),
                   epoch + 1);
  }
}

}  // namespace heed
