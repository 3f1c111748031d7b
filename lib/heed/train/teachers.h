#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "heed/autograd/packed_parameters.h"
#include "heed/checkpoint/checkpoint.h"
#include "heed/train/training_workers.h"

namespace heed {

/// Trained models whose predictions another model, the student, learns beside the targets (knowledge distillation,
/// Hinton et al. 2015; word-level knowledge distillation, Kim and Rush 2016). A teacher may have another architecture
/// and other sizes than the student.
class Teachers {
 public:
  /// Reads the models. `gpu` is the number of the GPU on which graphs will compute, if any; the parameters are copied
  /// to its memory. Throws Error naming the first file that is no model, or whose model cannot teach `student`: it has
  /// other vocabularies, reads images in another way, predicts all positions at once where the student predicts one
  /// after the other, or the other way round, or cannot read sequences of `longest` tokens.
  Teachers(const std::vector<std::string>& paths, const Checkpoint& student, int longest,
           std::optional<int> gpu = std::nullopt);

  /// Returns the loss of `student` with soft targets: the mean of the teachers' predictions, without dropout, of which
  /// the loss has the share `share` (see SoftTargets in ops/cross_entropy.h). Graphs that do not record have no soft
  /// targets. The model and this object must outlive the function.
  BatchLoss loss_of(const Model<float>& student, double share);
  std::size_t size() const { return models_.size(); }
  /// Returns the parameters of the teacher `i`.
  const ParameterValues<float>& parameters(std::size_t i) const { return models_[i].checkpoint.parameters; }
  /// Returns the number of bytes of the host's memory that the teachers' parameters and packed weights take.
  std::int64_t memory() const;

 private:
  struct Teacher {
    explicit Teacher(const std::string& path) : checkpoint(load_checkpoint(path)) {}

    Checkpoint checkpoint;
    std::optional<PackedParameters<float>> parameters = {};  // as inference reads them
  };

  std::deque<Teacher> models_;
};

}  // namespace heed
