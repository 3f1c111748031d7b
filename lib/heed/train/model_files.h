#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/checkpoint/checkpoint.h"

namespace heed {

/// "model.h5" and "best-bleu" give "model.best-bleu.h5".
std::string model_file_variant(const std::string& path, const std::string& what);

/// The file of the weights kept at an update: "model.update-1500.h5".
std::string kept_model_file(const std::string& path, std::int64_t update);

/// A checkpoint with the mean of the parameters of all files (checkpoint averaging, Vaswani et al. 2017), summed in
/// double in the given order. Throws Error that names the first file whose config or vocabularies differ.
Checkpoint average_checkpoints(const std::vector<std::string>& paths);

}  // namespace heed
