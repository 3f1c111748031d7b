#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "heed/checkpoint/parameter_reader.h"
#include "heed/checkpoint/training_state.h"
#include "heed/model/transformer.h"
#include "heed/text/text_model.h"

namespace heed {

/// Arrays of the parameters' layout that training keeps beside them: optimiser moments, smoothed parameters.
using TrainingArrays = std::map<std::string, ParameterValues<float>>;

/// A trained model with everything the way from text to text needs.
struct Checkpoint {
  std::shared_ptr<const Transformer<float>> model;
  ParameterValues<float> parameters;
  TextModel source, target;
};

/// A checkpoint whose parameters are read when and where they are wanted: the memory for them is there, and nothing is
/// in it. The reader serves as long as the checkpoint's model lives; it finds damage of large weights as they are read,
/// so reader->finish() comes before their use.
struct UnreadCheckpoint {
  Checkpoint checkpoint;
  std::unique_ptr<const ParameterReader> reader;
};

/// What a resumable checkpoint holds besides.
struct ResumableCheckpoint {
  Checkpoint checkpoint;
  TrainingState state;
  TrainingArrays arrays;
};

/// Writes a checkpoint (man/heed-checkpoint.5 has the layout). The file appears whole or not at all: it is written
/// beside, flushed to the disk and renamed. Throws Error, also where a parameter is not finite.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint, const TrainingState& state,
                     const TrainingArrays& arrays);

/// Reads a checkpoint. Throws Error that names the file: not HDF5, not a checkpoint, damaged, of another task, or with
/// missing, extra and wrongly shaped datasets, all listed in one message. Sizes are checked before memory is taken.
Checkpoint load_checkpoint(const std::string& path);
UnreadCheckpoint open_unread_checkpoint(const std::string& path);

/// Absent where the checkpoint is not resumable.
std::optional<ResumableCheckpoint> load_resumable_checkpoint(const std::string& path);

/// The text models alone, for `tokenize -m MODEL.h5`: reads no parameters.
std::pair<TextModel, TextModel> load_text_models(const std::string& path);

/// Whether a file starts as HDF5 files do.
bool looks_like_checkpoint(const std::string& path);

}  // namespace heed
