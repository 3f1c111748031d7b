#pragma once

#include <optional>

#include "heed/checkpoint/checkpoint.h"
#include "heed/data/image_corpus.h"
#include "heed/decode/decoder.h"
#include "heed/decode/force.h"
#include "heed/run/attention_report.h"
#include "heed/run/inspect_attention.h"
#include "heed/run/sentence_reader.h"

namespace heed {

/// Computes the attention of a model to the patches of images, each of which a line of the input names.
class ImageInspector {
 public:
  /// The model of `checkpoint` reads images. The other objects must outlive this one. Throws UsageError for options
  /// that have no use with such a model.
  ImageInspector(const InspectAttentionOptions& options, const Checkpoint& checkpoint, Decoder& decoder,
                 ForcedDecoder& forced, const SearchOptions& search, const AttentionReport& report);

  /// Fills in the image, the tokens and the attention weights of a line, which `reader` has just read. When the user
  /// gives no targets, predicts a label or a sentence and sets the target text. An empty line has no image. Throws
  /// Error when the image cannot be read, or when the target is no label of the model.
  void inspect(SentenceAttention& sentence, const SentenceReader& reader) const;

 private:
  void check_options() const;
  void check_rollout() const;
  bool classifies() const;
  void read_target(SentenceAttention& sentence, const SentenceReader& reader, std::span<const std::int32_t> samples,
                   Batch& batch) const;
  void predict(SentenceAttention& sentence, std::span<const std::int32_t> samples, Batch& batch) const;

  const InspectAttentionOptions& options_;
  const Checkpoint& checkpoint_;
  Decoder& decoder_;
  ForcedDecoder& forced_;
  const SearchOptions& search_;
  const AttentionReport& report_;
  ImageReader images_;
  std::optional<std::pair<int, int>> query_;  // the pixel of --query, (x, y)
};

}  // namespace heed
