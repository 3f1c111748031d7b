#include "heed/model/model_config.h"

#include <algorithm>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/log.h"

namespace heed {
namespace {

/// Calls use(alternative) with a default-constructed config of each architecture.
template <class Use>
void for_each_architecture(Use use) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (use(std::variant_alternative_t<i, ModelConfig>()), ...);
  }
  (std::make_index_sequence<std::variant_size_v<ModelConfig>>());
}

}  // namespace

ModelConfig preset(Task task) {
  switch (task) {
    case Task::transformer_tiny:
      return TransformerConfig(TransformerSize::tiny);
    case Task::transformer_mini:
      return TransformerConfig(TransformerSize::mini);
    case Task::transformer_small:
      return TransformerConfig(TransformerSize::small);
    case Task::transformer_base:
      return TransformerConfig(TransformerSize::base);
    case Task::transformer_big:
      return TransformerConfig(TransformerSize::big);
    case Task::rnn:
      return RnnConfig();
    case Task::rnn_attention:
      return RnnAttentionConfig();
    case Task::nat: {
      TransformerConfig config(TransformerSize::base);
      config.decoder_autoreg = DecoderAutoreg::none;
      return config;
    }
    case Task::vit_tiny_4:
      return VitConfig(VitSize::tiny_4);
    case Task::vit_small_16:
      return VitConfig(VitSize::small_16);
    case Task::vit_base_16:
      return VitConfig(VitSize::base_16);
    case Task::vit_large_16:
      return VitConfig(VitSize::large_16);
    case Task::vit_caption:
      return VitCaptionConfig();
    case Task::swin_tiny_2:
      return SwinConfig(SwinSize::tiny_2);
    case Task::swin_tiny:
      return SwinConfig(SwinSize::tiny);
    case Task::swin_small:
      return SwinConfig(SwinSize::small);
    case Task::swin_base:
      return SwinConfig(SwinSize::base);
  }
  throw Error("internal: unknown task");
}

std::string_view architecture(const ModelConfig& config) {
  return std::visit([](const auto& c) { return c.kArchitecture; }, config);
}

std::vector<std::string_view> architectures() {
  std::vector<std::string_view> out;
  for_each_architecture([&](const auto& config) { out.push_back(config.kArchitecture); });
  return out;
}

std::optional<ModelConfig> config_of(std::string_view architecture) {
  std::optional<ModelConfig> out;
  for_each_architecture([&](const auto& config) {
    if (config.kArchitecture == architecture) out = config;
  });
  return out;
}

FieldList fields_of(ModelConfig& config) {
  return std::visit([](auto& c) { return FieldList::of(c); }, config);
}

void validate(const ModelConfig& config) {
  std::visit([](const auto& c) { c.validate(); }, config);
}

const VocabularySizes& vocabulary_sizes(const ModelConfig& config) {
  return std::visit([](const auto& c) -> const VocabularySizes& { return c; }, config);
}

std::string unmet_need(const ModelConfig& config, std::string_view option) {
  return std::visit([&](const auto& c) { return c.unmet_need(option); }, config);
}

std::optional<int> longest_sequence(const ModelConfig& config) {
  return std::visit([](const auto& c) { return c.longest_sequence(); }, config);
}

const ImageInput* image_input(const ModelConfig& config) {
  return std::visit(
      [](const auto& c) -> const ImageInput* {
        if constexpr (requires { c.image; })
          return &c.image;
        else
          return nullptr;
      },
      config);
}

std::int32_t image_tokens(const ModelConfig& config) {
  return std::visit(
      [](const auto& c) -> std::int32_t {
        if constexpr (requires { c.image; })
          return c.tokens();
        else
          return 0;
      },
      config);
}

std::int32_t image_work(const ModelConfig& config) {
  constexpr std::int64_t kSamplesOfToken = std::int64_t{1} << 14;
  const ImageInput* const image = image_input(config);
  if (!image) return 0;
  const auto* const swin = std::get_if<SwinConfig>(&config);
  const std::int32_t tokens = swin ? swin->mean_tokens() : image_tokens(config);
  return std::max(tokens, static_cast<std::int32_t>(image->samples() / kSamplesOfToken));
}

bool is_classifier(const ModelConfig& config) {
  return image_input(config) && !std::holds_alternative<VitCaptionConfig>(config);
}

bool is_parallel(const ModelConfig& config) {
  return std::visit([](const auto& c) { return c.is_parallel(); }, config);
}

std::string describe(const ModelConfig& config, std::int64_t parameters) {
  return std::visit(
      [&](const auto& c) {
        return std::string(c.kName) + " with " + format_count(parameters) + " parameters (" + c.describe() + ")";
      },
      config);
}

}  // namespace heed
