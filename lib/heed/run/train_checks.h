#pragma once

#include "heed/run/train.h"

namespace heed {

/// Throws UsageError for all that is wrong with the options of `train` themselves: options that contradict each other,
/// that have no effect together, or that are missing. Reads no file. `ranks` is the number of processes that train
/// together.
void check_options(const TrainOptions& options, int ranks);

/// Throws UsageError where the options contradict the model or the text models: of the source, and of the target.
void check_with_texts(const TrainOptions& options, const ModelConfig& config, const TextModel& source,
                      const TextModel& target);

/// Describes the file `path` if it is one that `train` writes or removes beside the model: "a file of --keep-best", "a
/// file of --keep-last" or "the lock file of -m m.h5". Returns an empty text for all other files. `fields` are those of
/// TrainOptions.
std::string file_beside_model(const FieldList& fields, const std::string& path);

}  // namespace heed
