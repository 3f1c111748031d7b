#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heed/text/bpe/bpe_learner.h"

namespace heed {

/// What learn_unigram() learns: the number of pieces, and which parts of the text it learns them from.
struct UnigramLimits {
  std::int64_t size = 8000;  ///< number of pieces to learn, single characters included
  /// Share of the text's characters that must become pieces; rare characters beyond it do not.
  double character_coverage = 0.9995;
  std::int64_t min_frequency = 2;              ///< a piece of several characters must occur this often
  std::vector<std::string> user_symbols = {};  ///< strings that are cut out of the words before learning
  int threads = 1;                             ///< number of threads; the result is the same for any number
};

/// Pieces and their scores (logarithms of probabilities), the highest score first. A piece that starts a word starts
/// with U+2581.
using UnigramPieces = std::vector<std::pair<std::string, float>>;

/// Learns a unigram language model (Kudo 2018, "Subword regularization") from the words of a text. The first candidates
/// are the frequent substrings of words, of at most 16 characters; a substring is left out if a longer substring occurs
/// at all the same places. Expectation maximisation then gives the candidates probabilities (with the digamma function,
/// which favours models with few pieces; Liang and Klein 2007). Between the rounds the quarter of the candidates whose
/// removal costs the least likelihood is removed, until `limits.size` are left. unigram_learner.cpp explains the method
/// with an example. Throws Error if `limits.size` is smaller than the number of characters. Calls progress(number of
/// candidates left) after each round.
UnigramPieces learn_unigram(const WordCounts& words, const UnigramLimits& limits,
                            const std::function<void(std::int64_t)>& progress = {});

}  // namespace heed
