#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "heed/base/error.h"
#include "heed/checkpoint/h5.h"
#include "heed/checkpoint/integrity.h"
#include "heed/model/model_config.h"
#include "heed/text/text_model.h"

namespace heed {

// This file reads and writes the parts of a checkpoint that need no neural network: the config and the text models. A
// program that includes only this file is linked without the kernels and the kernels' libraries. Loading those
// libraries would be most of the start-up time of `tokenize -m MODEL.h5`, which needs only the text models.

// The values of the attributes format and format_version of the HDF5 root group: this version of heed reads only
// checkpoints with these values. The attribute task names the architecture of the model.
constexpr const char* kCheckpointFormat = "heed-checkpoint";
constexpr std::int64_t kCheckpointVersion = 1;

/// Returns the name of the HDF5 attribute that stores an option: "dim-emb" is stored as "dim_emb".
std::string attribute_name(std::string_view option);

/// Opens a file and checks that the file is a checkpoint in the format version that this version of heed reads. Throws
/// Error, with the name of the file, if not.
h5::File open_checkpoint(const std::string& path);

/// Reads the model's config from the HDF5 group /config. Throws Error if the architecture is unknown, or if attributes
/// are missing or unknown; throws UsageError if the value of an attribute is impossible.
ModelConfig read_config(const h5::File& file);

/// Writes the text models to the HDF5 groups /text/source and /text/target. A vocabulary or subword model that source
/// and target share is stored once, in /text/source, and /text/target gets a hard link to the stored dataset.
void write_text_models(h5::File& file, const TextModel& source_model, const TextModel& target_model);
/// Reads the text models of source and target. Throws Error if the file holds no text models, or damaged ones.
std::pair<TextModel, TextModel> read_text_models(const h5::File& file);

/// A checkpoint that is open for reading in two ways: `bytes` reads bytes of the file directly, and has checked the
/// checksums of the file; `file` reads datasets and attributes with the HDF5 library.
struct OpenCheckpoint {
  std::shared_ptr<const CheckedFile> bytes;
  std::shared_ptr<const h5::File> file;
};

/// Opens a checkpoint for reading bytes and for reading with the HDF5 library, and checks the checksums that `scope`
/// selects. Throws Error if the file cannot be read, is not a checkpoint, or does not match a checksum.
OpenCheckpoint open_checked(const std::string& path, ChecksumScope scope);

/// Opens a checkpoint and returns read(checkpoint). A UsageError that `read` throws is about a value in the file and
/// not on the command line: read_checked() throws an Error with the name of the file instead.
template <class Function>
auto read_checked(const std::string& path, ChecksumScope scope, Function read) {
  try {
    return read(open_checked(path, scope));
  } catch (const UsageError& error) {
    throw Error(Position{path}, std::string("/config: ") + error.what());
  }
}

}  // namespace heed
