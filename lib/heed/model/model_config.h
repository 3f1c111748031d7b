#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heed/config/fields.h"
#include "heed/model/transformer_config.h"

namespace heed {

/// The complete definition of any model, without the values of the parameters. One alternative is one architecture,
/// which is one value of the checkpoint's attribute `task`. An alternative has
/// - kArchitecture, the value of that attribute, and kName, the name for messages;
/// - fields(visitor), which lists what a checkpoint stores as attributes of the HDF5 group /config; the base
///   VocabularySizes has two of the fields;
/// - validate(), which throws UsageError if fields contradict each other;
/// - describe(), the sizes of the model in words;
/// - longest_sequence(), the greatest number of tokens of a sequence, if there is a limit.
///
/// This file needs no kernels, so that a program that reads only text models from checkpoints starts fast. make_model()
/// in model/make_model.h makes the model.
using ModelConfig = std::variant<TransformerConfig>;

/// Returns the name of the architecture, the value of a checkpoint's attribute `task`.
std::string_view architecture(const ModelConfig& config);
/// Returns the names of all architectures.
std::vector<std::string_view> architectures();
/// Returns a config of the architecture with this name, with default values; nothing if there is no such architecture.
std::optional<ModelConfig> config_of(std::string_view architecture);

/// Returns the fields of `config` that a checkpoint stores. The list refers to `config`.
FieldList fields_of(ModelConfig& config);
/// Throws UsageError, with the names of the options, if fields of the config contradict each other.
void validate(const ModelConfig& config);
const VocabularySizes& vocabulary_sizes(const ModelConfig& config);
/// Returns the greatest number of tokens in a sequence that the model accepts; nothing when it accepts any number.
std::optional<int> longest_sequence(const ModelConfig& config);
/// Describes a model with this number of parameters: "Transformer with 12,345,678 parameters (3 + 3 layers, width
/// 128, ...)".
std::string describe(const ModelConfig& config, std::int64_t parameters);

}  // namespace heed
