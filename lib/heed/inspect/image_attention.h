#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/image/image.h"
#include "heed/inspect/attention_map.h"
#include "heed/nn/image_grid.h"
#include "heed/tensor/packed.h"

namespace heed {

/// The label of the class token, which is no patch.
constexpr const char* kClassTokenLabel = "<class>";
/// The label of a row that is the mean of the rows of all tokens.
constexpr const char* kMeanLabel = "mean";

/// The attention weights of one layer for one image, as a Trace receives them. The tokens that are attended to are
/// those of `grid`.
struct LayerWeights {
  const ImageGrid& grid;
  int heads = 1;
  PackedOffsets queries, keys;
  std::span<const float> weights;
};

/// Returns the labels of the tokens of a grid, in the order of ImageGrid::place(): kClassTokenLabel, if there is a
/// class token, and "COLUMN,ROW" of each patch, counted from 0.
std::vector<std::string> patch_labels(const ImageGrid& grid);
/// Returns the patch that contains the pixel (x, y) of an image of size x size pixels.
std::int32_t patch_at(const ImageGrid& grid, int x, int y, int size);

/// Returns the self-attention weights of a head (counted from 0) from one query to all tokens, [tokens], in the order
/// of ImageGrid::place(). The query is the patch `patch`; without it, the class token; without a class token, the mean
/// of all queries. Tokens outside of the query's window have the weight 0. The weights sum to 1. Throws Error if the
/// sequences of the layer are not those of the grid.
std::vector<float> query_weights(const LayerWeights& layer, int head, std::optional<std::int32_t> patch);
/// Returns all self-attention weights of a head, [tokens, tokens], in the order of ImageGrid::place(). Throws Error as
/// query_weights().
std::vector<float> self_attention_weights(const LayerWeights& layer, int head);
/// Returns the cross-attention weights of a head from all queries to the tokens of an image, [queries, tokens], with
/// the tokens in the order of ImageGrid::place(). Throws Error if there are several sequences.
std::vector<float> cross_attention_weights(const LayerWeights& layer, int head);

/// An attention map whose columns are the tokens of an image, in the order of ImageGrid::place().
struct PatchMap {
  AttentionMap map;
  ImageGrid grid;
  /// The patch that is the query of the map's only row, if it is one.
  std::optional<std::int32_t> query = {};
};

/// An image as the model sees it, the maps of the attention to its patches, and a heading above them.
struct ImageSection {
  std::string heading;
  Image picture;
  std::vector<PatchMap> maps;
};

}  // namespace heed
