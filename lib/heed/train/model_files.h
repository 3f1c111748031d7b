#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/checkpoint/checkpoint.h"

namespace heed {

/// Returns the name of a file kept beside the model: "model.h5" and "best-bleu" give "model.best-bleu.h5".
std::string model_file_variant(const std::string& path, const std::string& what);

/// Returns the name of the file that keeps the weights of one update: "model.update-1500.h5" for update 1500.
std::string kept_model_file(const std::string& path, std::int64_t update);

/// Returns whether `file` is kept_model_file() of any update of the model `path`.
bool is_kept_model_file(const std::string& path, const std::string& file);

/// Returns a checkpoint whose parameters are the mean of the parameters of all files (checkpoint averaging, Vaswani et
/// al. 2017). The mean is summed in double precision in the order of `paths`. Throws Error naming the first file whose
/// config or vocabularies differ from the config and vocabularies of `paths[0]`.
Checkpoint average_checkpoints(const std::vector<std::string>& paths);

/// Sets the parameters with which a training begins: random ones, or those of the trained model in the file
/// `pretrained_model` unless the name is empty. Throws Error naming the file if its vocabularies differ, or its config
/// other than in dropout.
void set_first_parameters(Checkpoint& checkpoint, std::uint64_t seed, const std::string& pretrained_model);

}  // namespace heed
