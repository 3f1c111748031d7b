#pragma once

#include <vector>

#include "heed/model/batch.h"
#include "heed/model/transformer.h"

namespace heed {

/// log p of each target token (its </s> included) given source and the tokens before: [sentence][token]. With a
/// trace, the attention weights go there. `packed`: see TransformerStepModel.
std::vector<std::vector<float>> force_decode(const Transformer<float>& model, ParameterValues<float>& parameters,
                                             Precision precision, const Batch& batch, Trace* trace = nullptr,
                                             PackedParameters<float>* packed = nullptr);

/// A batch for teacher forcing from ids without </s>; appends </s> and <s> where they belong.
void append_pair(Batch& batch, std::span<const std::int32_t> source, std::span<const std::int32_t> target);

}  // namespace heed
