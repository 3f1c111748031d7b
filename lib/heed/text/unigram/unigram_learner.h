#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heed/text/bpe/bpe_learner.h"

namespace heed {

/// How many pieces learn_unigram() learns, and from which parts of the text.
struct UnigramLimits {
  std::int64_t size = 8000;  ///< the number of pieces to learn, single characters included
  /// The fraction of the text that the single-character pieces must cover. The rarest characters, which are not needed
  /// for this fraction, do not become pieces.
  double character_coverage = 0.9995;
  std::int64_t min_frequency = 2;              ///< how often a piece of several characters must occur in the text
  std::vector<std::string> user_symbols = {};  ///< strings that are cut out of the words before learning
  int threads = 1;                             ///< number of threads; the result is the same for any number
};

/// Learnt pieces with their scores (logarithms of their probabilities), the piece with the highest score first. A piece
/// that begins a word starts with U+2581.
using UnigramPieces = std::vector<std::pair<std::string, float>>;

/// Learns a unigram language model (Kudo 2018, "Subword regularization") from the words of a text. The first candidates
/// are the frequent substrings of words, of at most 16 characters; a substring is left out if a longer substring occurs
/// at all the same places. Expectation maximisation then gives the candidates probabilities (with the digamma function,
/// which favours models with few pieces; Liang and Klein 2007). Between the rounds the quarter of the candidates whose
/// removal costs the least likelihood is removed, until `limits.size` are left. unigram_learner.cpp explains the method
/// with an example. The words with their counts may make up a text of at most 10^15 bytes. Throws Error if
/// `limits.size` is smaller than the number of characters. Calls progress(number of candidates left) after each round.
UnigramPieces learn_unigram(const WordCounts& words, const UnigramLimits& limits,
                            const std::function<void(std::int64_t)>& progress = {});

}  // namespace heed
