#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "heed/base/error.h"
#include "heed/checkpoint/h5.h"
#include "heed/checkpoint/integrity.h"
#include "heed/model/transformer_config.h"
#include "heed/text/text_model.h"

namespace heed {

// The parts of a checkpoint that need no network, apart from the others: a tool that takes only the text models out of
// one is linked without the kernels and their libraries, whose loading would be most of its start-up time.

constexpr const char* kCheckpointFormat = "heed-checkpoint";
constexpr std::int64_t kCheckpointVersion = 1;
constexpr const char* kCheckpointTask = "transformer";

/// The name of an option as an HDF5 attribute.
std::string attribute_name(std::string_view option);

/// Opens a file and makes sure that it is a checkpoint this version reads. Throws Error that names the file.
h5::File open_checkpoint(const std::string& path);

/// Throws Error for another architecture and for missing or unknown attributes, UsageError for impossible values.
TransformerConfig read_config(const h5::File& file);

/// What both sides share is stored once, under both names.
void write_text_models(h5::File& file, const TextModel& source_model, const TextModel& target_model);
std::pair<TextModel, TextModel> read_text_models(const h5::File& file);

/// A checkpoint open for reading: its bytes, which agree with their checksums, and what HDF5 makes of them.
struct OpenCheckpoint {
  std::shared_ptr<const CheckedFile> bytes;
  std::shared_ptr<const h5::File> file;
};

/// Throws Error for bytes that do not agree with their checksum.
OpenCheckpoint open_checked(const std::string& path, ChecksumScope scope);

/// Calls `read` on a checkpoint. Usage errors in it come from values in the file, not from the command line, and name
/// the file.
template <class Function>
auto read_checked(const std::string& path, ChecksumScope scope, Function read) {
  try {
    return read(open_checked(path, scope));
  } catch (const UsageError& error) {
    throw Error(Position{path}, std::string("/config: ") + error.what());
  }
}

}  // namespace heed
