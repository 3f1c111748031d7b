#pragma once

#include <vector>

#include "heed/model/model.h"

namespace heed {

/// Computes log p of each target token given the source and the earlier target tokens (forced decoding); `</s>` counts
/// as a target token. Returns [sentence][token]. A model that predicts all positions at once knows of the target only
/// its length, whose log-probability stands for that of `</s>` unless the model predicts `</s>`. `packed` holds the
/// packed weights, as in NetworkStepModel; null packs the weights for this call.
std::vector<std::vector<float>> force_decode(const Model<float>& model, ParameterValues<float>& parameters,
                                             Precision precision, const Batch& batch,
                                             PackedParameters<float>* packed = nullptr);

/// Gives the attention weights of the model, when it reads these sources and targets, to `trace`. `packed` is as in
/// force_decode().
void trace_attention(const Model<float>& model, ParameterValues<float>& parameters, Precision precision,
                     const Batch& batch, Trace<float>& trace, PackedParameters<float>* packed = nullptr);

}  // namespace heed
