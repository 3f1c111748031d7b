#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/inspect/attention_map.h"
#include "heed/text/text_model.h"

namespace heed {

/// The tokens along one side of an attention map.
struct AttentionTokens {
  std::vector<std::string> pieces = {};
  /// The words that the pieces form: the text of each word, and the index of each piece's word.
  WordGroups words = {};
  SentenceMarks marks = {};
};

/// A sentence as ids for the model and as pieces for the report. For an unknown piece, `pieces` has the piece's text.
struct PieceSentence {
  std::vector<std::int32_t> ids;  // without <s> and </s>
  std::vector<std::string> pieces;
};

/// Encodes a raw line; a blank line has no pieces. Throws Error at the place `where` if the line has bytes that the
/// text model refuses.
PieceSentence encode(const TextModel& model, const std::string& raw, const Position& where);
PieceSentence from_ids(const TextModel& model, std::vector<std::int32_t> ids);

/// Returns `pieces` with the words that the pieces form. Adds `<s>` before the pieces if `start` is true, and `</s>`
/// after the pieces if `end` is true.
AttentionTokens tokens_of(const TextModel& model, const std::vector<std::string>& pieces, bool start, bool end);

}  // namespace heed
