#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "heed/checkpoint/parameter_reader.h"
#include "heed/checkpoint/training_state.h"
#include "heed/model/model.h"
#include "heed/text/text_model.h"

namespace heed {

/// The arrays that training saves in addition to the parameters, by name. Each array has one element for each element
/// of the parameters: optimiser moments and, if the HDF5 group /parameters holds smoothed or averaged parameters, the
/// parameters before smoothing or averaging.
using TrainingArrays = std::map<std::string, ParameterValues<float>>;

/// A trained model, with everything that translation from text to text needs: the architecture, the parameters, and the
/// text models of source and target (tokenising and normalising steps, subword model, vocabulary).
struct Checkpoint {
  std::shared_ptr<const Model<float>> model;
  ParameterValues<float> parameters;
  TextModel source, target;
};

/// A checkpoint whose parameters are allocated but not yet read. `reader` reads the parameters, in parts and on any
/// thread, and must not be used after the checkpoint's model has been destroyed. Damage to a large weight is found only
/// when the whole weight has been read: before using any value, the caller must call reader->finish(), which reads and
/// checks the missing parts.
struct UnreadCheckpoint {
  Checkpoint checkpoint;
  std::unique_ptr<const ParameterReader> reader;
};

/// A checkpoint from which training can be resumed: the model, the state of training, and the optimiser's arrays.
struct ResumableCheckpoint {
  Checkpoint checkpoint;
  TrainingState state;
  TrainingArrays arrays;
};

/// Writes a checkpoint file; man/heed-checkpoint.5 documents the layout. Writes to a temporary file, flushes the file
/// to the disk and renames it to `path`, so that `path` is never half written. Throws Error if the file cannot be
/// written, or if a parameter is not finite.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Writes a checkpoint file from which training can be resumed: the model, the state of training and the optimiser's
/// arrays.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint, const TrainingState& state,
                     const TrainingArrays& arrays);

/// Reads the model of a checkpoint file. Checks sizes before allocating memory. Throws Error, with the name of the
/// file, if the file is not HDF5, is not a checkpoint, is damaged, or is for another architecture; one message lists
/// all missing, extra and wrongly shaped datasets.
Checkpoint load_checkpoint(const std::string& path);
/// Reads a checkpoint file like load_checkpoint(), but leaves the values of the parameters unread: the `reader` of the
/// result reads the values later.
UnreadCheckpoint open_unread_checkpoint(const std::string& path);

/// Reads a checkpoint file from which training can be resumed. Returns nothing if the file holds a model without a
/// state of training. Throws the errors of load_checkpoint(), and Error if the state of training is damaged.
std::optional<ResumableCheckpoint> load_resumable_checkpoint(const std::string& path);

/// Reads only the state of training of a checkpoint file. Returns nothing if the file holds none. Throws the errors of
/// load_resumable_checkpoint() except for those about the model.
std::optional<TrainingState> load_training_state(const std::string& path);

/// Reads the text models of source and target from a checkpoint file, without the parameters, for `tokenize -m
/// MODEL.h5`.
std::pair<TextModel, TextModel> load_text_models(const std::string& path);

/// Tells whether a regular file starts with the 8 bytes with which all HDF5 files start. Does not read from pipes.
bool looks_like_checkpoint(const std::string& path);

}  // namespace heed
