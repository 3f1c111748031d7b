#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/line_io.h"
#include "heed/data/parallel_corpus.h"
#include "heed/text/lexicon/alignment_links.h"
#include "heed/text/text_model.h"

namespace heed {

/// The number of pieces that get links where no piece is left out.
constexpr std::int32_t kAllPieces = std::numeric_limits<std::int32_t>::max();

/// Returns for each piece of a tokenised sentence the index of the word that the piece belongs to, from 0.
std::vector<int> words_of_pieces(const TextModel& model, const std::string& tokens);

/// The links of a word alignment as links between pieces: all pieces of a source word with all pieces of a target word,
/// in ascending order of the target and then the source. `source_words` and `target_words` are what words_of_pieces()
/// returned. Only the first `most` pieces of each side get links. Throws Error if a link is outside the sentences.
std::vector<PieceLink> piece_links(std::vector<AlignmentLink> words, std::span<const int> source_words,
                                   std::span<const int> target_words, std::int32_t most = kAllPieces);

/// Reads the word alignment of a sentence pair, in the format of fast_align and of `inspect-attention -f pharaoh`:
/// links "source word-target word", counted from 0, such as "0-0 1-2". Returns the links between the pieces of these
/// words, of which the first `most` of each side get links. `where` is the line, for messages. Throws Error where the
/// line is not a list of links, or a link is outside the sentences.
std::vector<PieceLink> piece_links(std::string_view line, std::span<const int> source_words,
                                   std::span<const int> target_words, const Position& where,
                                   std::int32_t most = kAllPieces);

/// Returns the alignment of a linear tree with its words. Each token is linked to the next word that the decoder must
/// write when it predicts the token: a part of speech to its own word, and a bracket to the word that follows it. The
/// brackets after the last word are linked to the last word. `linear_tree` is the result of linearize_tree().
std::vector<AlignmentLink> links_to_leaves(std::string_view linear_tree);

/// Converts the links of a sentence pair whose words have been cut into other pieces: a link between two old pieces
/// becomes links between all new pieces of the two words. `source_before` and `target_before` have the index of the
/// word of each old piece; `source_now` and `target_now` have the index of the word of each new piece.
std::vector<PieceLink> links_of_new_pieces(std::span<const PieceLink> links, std::span<const int> source_before,
                                           std::span<const int> target_before, std::span<const int> source_now,
                                           std::span<const int> target_now);

}  // namespace heed
