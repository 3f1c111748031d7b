#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>

#include "heed/base/temporary_name.h"
#include "heed/checkpoint/h5.h"
#include "heed/inspect/attention_map.h"

namespace heed {

/// Attention maps of many sentences as an HDF5 file:
///
///     lines/N               attributes source and target, the texts of line N
///     lines/N/KIND/queries  the tokens of the rows, lines/N/KIND/keys those of the columns
///     lines/N/KIND/keys_L   those of layer L alone, with queries_L, where they differ from the first layer's
///     lines/N/KIND/layer_L  float32 [heads, queries, keys], attribute heads: their numbers, or mean or max
class AttentionFile {
 public:
  /// `output` is the name of the file; until write_to(), the maps are in a temporary file beside it, or, if it is a
  /// pipe or a device, in the folder for temporary files.
  explicit AttentionFile(const std::string& output);

  /// Adds the maps of a sentence. Maps of one layer and kind must follow one another.
  void add(std::int64_t line, const std::string& source, const std::string& target, std::span<const AttentionMap> maps);
  /// Writes the file to a stream. No more sentences may be added afterwards.
  void write_to(std::ostream& out);

 private:
  std::unique_ptr<TemporaryName> name_;
  h5::File file_;
};

}  // namespace heed
