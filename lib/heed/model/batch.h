#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/ops/alignment_loss.h"
#include "heed/tensor/packed.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {

/// Several sequences of token ids, stored one after another without padding. Sequence i is
/// ids[offsets[i]] ... ids[offsets[i + 1] - 1]: the sequences {5, 6} and {7} are ids = {5, 6, 7}, offsets = {0, 2, 3}.
struct PackedIds {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> offsets{0};

  void clear() {
    ids.clear();
    offsets.assign(1, 0);
  }
  void append(std::span<const std::int32_t> sequence) {
    ids.insert(ids.end(), sequence.begin(), sequence.end());
    end_sequence();
  }
  /// Ends a sequence: the ids that were added to `ids` since the last sequence are the sequence. Throws Error if the
  /// sequences have more ids than the offsets can count.
  void end_sequence() {
    if (ids.size() > std::numeric_limits<std::int32_t>::max())
      throw Error("a batch of " + std::to_string(sequences() + 1) +
                  " sequences has more than 2147483647 ids, which are the samples of images (take smaller batches)");
    offsets.push_back(static_cast<std::int32_t>(ids.size()));
  }
  int sequences() const { return static_cast<int>(offsets.size()) - 1; }
  int tokens() const { return static_cast<int>(ids.size()); }
  PackedOffsets packed() const { return {offsets}; }
  std::span<const std::int32_t> sequence(int i) const {
    const PackedOffsets view = packed();
    return std::span(ids).subspan(static_cast<std::size_t>(view.begin(i)), static_cast<std::size_t>(view.length(i)));
  }
};

/// A batch of sentence pairs for training with teacher forcing: the decoder reads the correct target tokens, target_in,
/// and learns to predict the next token at each position, target_out. target_in.offsets are the boundaries of the
/// sequences in target_out, too.
///
/// The source of an image model is an image (nn/patch_embedding.h, with kReservedIds as the first id), also followed by
/// </s>. A classifier's target is a single class (model/image_classifier.h).
struct Batch {
  PackedIds source;     ///< the source token ids, which the encoder reads; each sequence ends with </s>
  PackedIds target_in;  ///< the target token ids that the decoder reads; each sequence starts with <s>
  /// The target token ids that the decoder should predict: each sequence is the target_in sequence without <s> and with
  /// </s> at the end.
  std::vector<std::int32_t> target_out;
  /// The links of the word alignments, for guided alignment: target positions (queries) and the source positions (keys)
  /// that they come from. Empty where the examples have no alignments.
  std::vector<AttentionLink> alignment = {};
  /// For each element of target_out, a second target and its share in 0 ... 1, for images that are mixtures of two.
  /// Empty where each target is one.
  std::vector<std::int32_t> second_targets = {};
  std::vector<float> second_shares = {};

  void clear() {
    source.clear();
    target_in.clear();
    target_out.clear();
    alignment.clear();
    second_targets.clear();
    second_shares.clear();
  }
  /// Adds a sentence pair: `source_ids` and `target_ids` are ids without `<s>` and `</s>`. The function adds `</s>`
  /// after the source, `<s>` before the target input and `</s>` after the target output.
  void add(std::span<const std::int32_t> source_ids, std::span<const std::int32_t> target_ids) {
    source.ids.insert(source.ids.end(), source_ids.begin(), source_ids.end());
    source.ids.push_back(kEndId);
    source.end_sequence();
    target_in.ids.push_back(kStartId);
    target_in.ids.insert(target_in.ids.end(), target_ids.begin(), target_ids.end());
    target_in.end_sequence();
    target_out.insert(target_out.end(), target_ids.begin(), target_ids.end());
    target_out.push_back(kEndId);
  }
  /// Adds an image with its class. `samples` are the ids of the image, without </s>.
  void add_classified(std::span<const std::int32_t> samples, std::int32_t label) {
    source.ids.insert(source.ids.end(), samples.begin(), samples.end());
    source.ids.push_back(kEndId);
    source.end_sequence();
    target_in.ids.push_back(kStartId);
    target_in.end_sequence();
    target_out.push_back(label);
  }
  int sequences() const { return source.sequences(); }
};

}  // namespace heed
