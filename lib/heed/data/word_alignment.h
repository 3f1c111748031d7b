#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/line_io.h"
#include "heed/data/parallel_corpus.h"
#include "heed/text/text_model.h"

namespace heed {

/// Returns for each piece of a tokenised sentence the index of the word that the piece belongs to, from 0.
std::vector<int> words_of_pieces(const TextModel& model, const std::string& tokens);

/// Reads the word alignment of a sentence pair, in the format of fast_align and of `inspect-attention -f pharaoh`:
/// links "source word-target word", counted from 0, such as "0-0 1-2". Returns the links between the pieces of these
/// words, in ascending order of the target and then the source. `source_words` and `target_words` are what
/// words_of_pieces() returned; `where` is the line, for messages. Throws Error where the line is not a list of links,
/// or a link is outside the sentences.
std::vector<PieceLink> piece_links(std::string_view line, std::span<const int> source_words,
                                   std::span<const int> target_words, const Position& where);

}  // namespace heed
