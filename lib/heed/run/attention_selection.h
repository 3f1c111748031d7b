#pragma once

#include <vector>

#include "heed/inspect/attention_map.h"
#include "heed/inspect/image_attention.h"
#include "heed/model/model.h"
#include "heed/run/attention_options.h"
#include "heed/run/sentence_attention.h"

namespace heed {

/// Selects the attention maps of sentences and images that the options choose: kinds, layers, heads, and pieces or
/// words; or computes rollouts.
class AttentionSelection {
 public:
  AttentionSelection(const AttentionReportOptions& options, AttentionFormat format);

  /// Checks that the model has the kind of attention, the layers and the heads that the options name. `attention` is
  /// what Model::attention_layers() returned. Throws UsageError otherwise.
  void check_model(const std::vector<AttentionLayers>& attention);
  /// Returns whether the weights of this kind of attention are needed.
  bool wants(AttentionKind kind) const;
  /// Returns whether the maps include this kind of attention.
  bool shows(AttentionKind kind) const { return wants(kind) && depth(kind) > 0; }
  /// Returns the value of --layer, or its default.
  const std::string& layer() const { return options_.layer; }

  /// Returns the attention maps of `sentence` that the options choose, ordered by kind, layer and head.
  std::vector<AttentionMap> maps(const SentenceAttention& sentence) const;
  /// Returns the maps of attention to patches of an image, as they are drawn: with all heads of a layer, also their
  /// mean.
  std::vector<PatchMap> patch_maps(const SentenceAttention& sentence) const;

 private:
  /// The maps of one layer. `image` is the image's layer; null if the columns are no patches.
  struct Selected {
    const AttendedImage::Layer* image;
    std::vector<AttentionMap> maps;
  };

  std::vector<Selected> select(const SentenceAttention& sentence) const;
  std::vector<AttentionMap> heads_of(const SentenceAttention& sentence, AttentionKind kind, int layer) const;
  std::vector<AttentionMap> choose_heads(std::vector<AttentionMap> heads) const;
  std::vector<Selected> rollouts(const SentenceAttention& sentence) const;
  AttentionMap refined(AttentionMap map, const AttentionTokens& rows, const AttentionTokens& columns) const;
  std::vector<int> layers(AttentionKind kind) const;
  int depth(AttentionKind kind) const;
  int most_heads(bool all) const;
  void check_heads() const;

  AttentionReportOptions options_;
  AttentionFormat format_;
  bool words_;
  std::vector<AttentionLayers> attention_;  // of the model
};

}  // namespace heed
