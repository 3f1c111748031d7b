#pragma once

#include <vector>

#include "heed/model/model.h"

namespace heed {

/// Computes log p of each target token given the source and the earlier target tokens (forced decoding); `</s>` counts
/// as a target token. Returns [sentence][token]. The attention weights go to `trace`, if given. `packed` holds the
/// packed weights, as in NetworkStepModel; null packs the weights for this call.
std::vector<std::vector<float>> force_decode(const Model<float>& model, ParameterValues<float>& parameters,
                                             Precision precision, const Batch& batch, Trace<float>* trace = nullptr,
                                             PackedParameters<float>* packed = nullptr);

}  // namespace heed
