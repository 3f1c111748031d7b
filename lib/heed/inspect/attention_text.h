#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heed/inspect/attention_map.h"

namespace heed {

/// Returns the first line of a TSV file of attention weights: the column names "line kind layer head query query_token
/// key key_token weight", separated by tabs.
std::string attention_tsv_header();

/// Returns an attention map as TSV, with one line for each weight. `line` is the number of the sentence. The columns
/// `query` and `key` are the indices of the two tokens, from 0; the column `head` is a number, "mean" or "max". A tab,
/// line end or backslash inside a token is written as \t, \n, \r or \\. With `top`, only the `top` greatest weights of
/// each query are written, the greatest first.
std::string attention_tsv(std::int64_t line, const AttentionMap& map, std::optional<int> top = {});

/// Returns a line for each query of a map with the `top` keys that have the greatest weights, the greatest first:
/// "calme  calm 0.71  he 0.12". If a line is wider than `width` terminal columns (0: no limit), it is broken, and goes
/// on below the keys.
std::string attention_list(const AttentionMap& map, int top, int width);

/// Returns an attention map as one line with a JSON object: {"line", "kind", "layer", "head", "rows", "columns",
/// "weights"}. "line" is the number of the sentence; "weights" has one list of numbers for each row.
std::string attention_jsonl(std::int64_t line, const AttentionMap& map);

/// Returns an attention map as a table for a terminal: the weights with two decimals under the tokens of the columns.
/// If the table is wider than `width` terminal columns (0: no limit), several tables are drawn one below the other,
/// each with a part of the map's columns; a token that is too wide for a table of one column is cut.
std::string attention_table(const AttentionMap& map, int width);

}  // namespace heed
