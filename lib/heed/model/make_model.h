#pragma once

#include <memory>

#include "heed/model/model.h"

namespace heed {

/// Makes the model of a config. Throws UsageError if fields of the config contradict each other.
template <class T>
std::unique_ptr<const Model<T>> make_model(const ModelConfig& config);

}  // namespace heed
