#pragma once

#include "heed/ops/alignment_loss.h"
#include "heed/ops/attention.h"

namespace heed {

/// e in the formula of alignment_loss().
constexpr double kSmallWeight = 1e-6;

/// Calls body(at, step, share) for each link: the weight of the link's query and key in head h is element at + h step.
template <class Body>
void for_each_link(PackedOffsets queries, PackedOffsets keys, int heads, std::span<const AttentionLink> links,
                   const Body& body) {
  std::int64_t begin = 0;
  std::int32_t sequence = -1;
  for (const AttentionLink& link : links) {
    if (link.sequence != sequence) {
      sequence = link.sequence;
      begin = attention_weights_offset(queries, keys, heads, sequence, 0);
    }
    const std::int64_t length = keys.length(sequence);
    body(begin + link.query * length + link.key, queries.length(sequence) * length, static_cast<double>(link.share));
  }
}

}  // namespace heed
