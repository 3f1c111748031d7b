#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heed/text/bpe/bpe_learner.h"

namespace heed {

/// What learn_unigram() learns.
struct UnigramLimits {
  std::int64_t size = 8000;            ///< number of pieces, single characters included
  double character_coverage = 0.9995;  ///< share of the text that the characters kept cover, the most frequent first
  std::int64_t min_frequency = 2;      ///< of a piece of several characters
  std::vector<std::string> user_symbols = {};  ///< cut out of the words; not learnt
  int threads = 1;                             ///< the result does not depend on it
};

/// Pieces and their log-probabilities, the most probable first. A word's first piece starts with U+2581.
using UnigramPieces = std::vector<std::pair<std::string, float>>;

/// Learns a unigram language model (Kudo 2018): candidates are the substrings of words of at most 16 characters that
/// no longer one always replaces; expectation maximisation gives them probabilities, with the digamma function for a
/// sparse prior (Liang and Klein 2007); again and again the quarter whose loss costs the likelihood least is dropped.
/// Throws Error where the size has no room for the characters. `progress` is told the number of pieces left.
UnigramPieces learn_unigram(const WordCounts& words, const UnigramLimits& limits,
                            const std::function<void(std::int64_t)>& progress = {});

}  // namespace heed
