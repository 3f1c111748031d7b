#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/image/image.h"
#include "heed/inspect/head_statistics.h"
#include "heed/nn/image_grid.h"
#include "heed/nn/trace.h"
#include "heed/run/attention_tokens.h"

namespace heed {

/// An image to whose patches a model attends.
struct AttendedImage {
  /// A layer whose tokens are patches.
  struct Layer {
    AttentionKind kind = AttentionKind::encoder;
    int layer = 1;
    ImageGrid grid;
    std::optional<std::int32_t> query;  ///< the patch of --query
  };
  Image picture = {.samples = {}};  ///< as the model sees it; without samples where the line is empty
  std::vector<Layer> layers = {};
  std::optional<double> probability = {};  ///< of the label

  /// Returns the layer; null if its tokens are no patches.
  const Layer* find(AttentionKind kind, int layer) const {
    const auto found =
        std::ranges::find_if(layers, [&](const Layer& each) { return each.kind == kind && each.layer == layer; });
    return found == layers.end() ? nullptr : &*found;
  }
};

/// The attention weights that a model computes for one sentence pair, with the texts and tokens of the pair.
struct SentenceAttention {
  std::int64_t line = 0;
  /// The source and the target sentence as raw text.
  std::string source_text = {}, target_text = {};
  /// The tokens that the encoder reads: pieces of the source and `</s>`.
  AttentionTokens source = {};
  /// The tokens that the decoder reads: `<s>` and pieces of the target.
  AttentionTokens fed = {};
  /// The tokens that the decoder predicts: pieces of the target and `</s>`.
  AttentionTokens produced = {};
  struct Head {
    AttentionKind kind = AttentionKind::cross;
    int layer = 1, head = 1;
    /// The attention weights of this head: [queries, keys] in row-major order.
    std::vector<float> weights;
  };
  /// The word alignment that people have made, with --gold.
  GoldAlignment gold = {};
  /// The attention weights of each head; empty when source and target are empty lines.
  std::vector<Head> heads = {};
  /// The source, if it is an image. `source` is then empty, and the weights of encoder attention have one row, or all
  /// rows if the report wants rollout.
  std::optional<AttendedImage> image = {};
};

}  // namespace heed
