#pragma once

namespace heed {

/// How attention scores a query q and a key k of a head: `dot` is q . k / sqrt(d) (Vaswani et al. 2017), `additive` is
/// v . tanh(q + k) with a learnt vector v (Bahdanau et al. 2015).
enum class AttentionScoring { dot, additive };

}  // namespace heed
