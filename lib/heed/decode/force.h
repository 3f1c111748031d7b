#pragma once

#include <memory>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/model/model.h"
#include "heed/tensor/owned_device.h"

namespace heed {

/// Reads given targets (forced decoding) with one model, on one thread or on a GPU.
class ForcedDecoder {
 public:
  /// The arguments are those of NetworkStepModel.
  ForcedDecoder(const Model<float>& model, ParameterValues<float>& parameters, Precision precision,
                std::shared_ptr<PackedParameters<float>> packed = nullptr);

  /// Computes log p, in nats, of each target token given the source and the earlier target tokens; `</s>` counts as a
  /// target token. Returns [sentence][token]. A model that predicts all positions at once reads a target whose tokens
  /// are all masked, so that it knows only the length of the target. If such a model does not predict `</s>`, the
  /// element of `</s>` is the log-probability of the length, which is minus infinity for a length that the model cannot
  /// predict.
  std::vector<std::vector<float>> scores(const Batch& batch);

  /// Computes the model on the sources and targets of `batch` (teacher forcing), and passes the attention weights to
  /// `trace`, in the memory of the host.
  void attention(const Batch& batch, Trace<float>& trace);

 private:
  std::vector<std::vector<float>> token_scores(Tensor<float> hidden, std::span<const std::int32_t> tokens,
                                               PackedOffsets offsets);
  std::vector<std::vector<float>> scores_at_once(const Batch& batch);
  void begin();

  const Model<float>& model_;
  std::shared_ptr<PackedParameters<float>> packed_;
  OwnedDevice device_;
  Graph<float> graph_;
};

}  // namespace heed
