#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heed/config/fields.h"
#include "heed/model/rnn_config.h"
#include "heed/model/swin_config.h"
#include "heed/model/transformer_config.h"
#include "heed/model/vit_config.h"

namespace heed {

/// The complete definition of any model, without the values of the parameters. One alternative is one architecture,
/// which is one value of the checkpoint's attribute `task`. An alternative has
/// - kArchitecture, the value of that attribute, and kName, the name for messages;
/// - option_fields(visitor), which lists the fields that are options of `train`;
/// - unmet_need(option), which says what else the user must give so that an option has an effect;
/// - fields(visitor), which lists what a checkpoint stores as attributes of the HDF5 group /config; the base
///   VocabularySizes has two of the fields;
/// - validate(), which throws UsageError if fields contradict each other;
/// - describe(), the sizes of the model in words;
/// - longest_sequence(), the greatest number of tokens of a sequence, if there is a limit.
///
/// This file needs no kernels, so that a program that reads only text models from checkpoints starts fast. make_model()
/// in model/make_model.h makes the model.
using ModelConfig =
    std::variant<TransformerConfig, RnnConfig, RnnAttentionConfig, VitConfig, VitCaptionConfig, SwinConfig>;

/// The values of the option --task of `train`. Each names an architecture with its sizes.
enum class Task {
  transformer_tiny,
  transformer_mini,
  transformer_small,
  transformer_base,
  transformer_big,
  rnn,
  rnn_attention,
  nat,
  vit_tiny_4,
  vit_small_16,
  vit_base_16,
  vit_large_16,
  vit_caption,
  swin_tiny_2,
  swin_tiny,
  swin_small,
  swin_base
};
constexpr Task kDefaultTask = Task::transformer_base;

template <>
struct EnumNames<Task> {
  static constexpr std::pair<Task, std::string_view> values[] = {{Task::transformer_tiny, "transformer-tiny"},
                                                                 {Task::transformer_mini, "transformer-mini"},
                                                                 {Task::transformer_small, "transformer-small"},
                                                                 {Task::transformer_base, "transformer-base"},
                                                                 {Task::transformer_big, "transformer-big"},
                                                                 {Task::rnn, "rnn"},
                                                                 {Task::rnn_attention, "rnn-attention"},
                                                                 {Task::nat, "nat"},
                                                                 {Task::vit_tiny_4, "vit-tiny/4"},
                                                                 {Task::vit_tiny_4, "vit"},
                                                                 {Task::vit_small_16, "vit-s/16"},
                                                                 {Task::vit_base_16, "vit-b/16"},
                                                                 {Task::vit_large_16, "vit-l/16"},
                                                                 {Task::vit_caption, "vit-caption"},
                                                                 {Task::swin_tiny_2, "swin-tiny/2"},
                                                                 {Task::swin_tiny_2, "swin"},
                                                                 {Task::swin_tiny, "swin-t"},
                                                                 {Task::swin_small, "swin-s"},
                                                                 {Task::swin_base, "swin-b"}};
};

/// Returns the config that a task stands for, without vocabulary sizes.
ModelConfig preset(Task task);

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
/// Returns the numbers of source and target pieces of the model. The result refers to `config`.
const VocabularySizes& vocabulary_sizes(const ModelConfig& config);
/// Returns what the user must also give so that an option of `train` has an effect; an empty string if the option has
/// an effect or is no option of the model.
std::string unmet_need(const ModelConfig& config, std::string_view option);
/// Returns the greatest number of tokens in a sequence that the model accepts; nothing when it accepts any number.
std::optional<int> longest_sequence(const ModelConfig& config);
/// Returns how the model reads images; null if it reads text.
const ImageInput* image_input(const ModelConfig& config);
/// Returns the number of tokens that a model makes of an image; 0 if it reads text.
std::int32_t image_tokens(const ModelConfig& config);
/// Returns the work of one image, measured in tokens, by which a batch of images is cut into shards: the mean number of
/// tokens by which a weight of the model is multiplied. With this measure, reading the weights and adding up their
/// gradients takes about the same part of the time of a shard in all models. An image of few tokens counts for at least
/// one for every 2^14 samples, so that the ids of a shard do not fill the memory. Returns 0 if the model reads text.
std::int32_t image_work(const ModelConfig& config);
/// Returns whether the model gives its source one of several labels, instead of writing a text.
bool is_classifier(const ModelConfig& config);
/// Returns whether the model predicts all positions of a target at once.
bool is_parallel(const ModelConfig& config);
/// Describes a model with this number of parameters: "Transformer with 12,345,678 parameters (3 + 3 layers, width
/// 128, ...)".
std::string describe(const ModelConfig& config, std::int64_t parameters);

}  // namespace heed
