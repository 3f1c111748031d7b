#pragma once

#include <cstdint>
#include <string>

#include "heed/inspect/attention_map.h"

namespace heed {

/// "line kind layer head query query_token key key_token weight", separated by tabs.
std::string attention_tsv_header();

/// One line for each weight. `line` is the sentence's number; queries and keys count from 0, as in Pharaoh's links; the
/// head is a number, "mean" or "max". A tab or line end inside a token is written as \t, \n, \r.
std::string attention_tsv(std::int64_t line, const AttentionMap& map);

/// One JSON object and a line end: {"line", "kind", "layer", "head", "rows", "columns", "weights" (a list for each
/// row)}.
std::string attention_jsonl(std::int64_t line, const AttentionMap& map);

/// The weights with two digits under the columns' names, in blocks of columns that fit into `width` terminal columns
/// (0: no limit).
std::string attention_table(const AttentionMap& map, int width);

}  // namespace heed
