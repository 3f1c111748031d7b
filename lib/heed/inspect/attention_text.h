#pragma once

#include <cstdint>
#include <string>

#include "heed/inspect/attention_map.h"

namespace heed {

/// Returns the header line of the TSV format: the names "line kind layer head query query_token key key_token weight",
/// separated by tabs.
std::string attention_tsv_header();

/// Returns a map as TSV, with one line for each weight. `line` is the number of the sentence. Queries and keys count
/// from 0, as in Pharaoh's links; the head is a number, "mean" or "max". A tab or line end inside a token is written as
/// \t, \n or \r.
std::string attention_tsv(std::int64_t line, const AttentionMap& map);

/// Returns a map as one JSON object and a line end: {"line", "kind", "layer", "head", "rows", "columns", "weights"},
/// where "weights" has one list for each row.
std::string attention_jsonl(std::int64_t line, const AttentionMap& map);

/// Returns a map as a table for a terminal: the weights with two decimals under the names of the columns. When the
/// table is wider than `width` terminal columns (0: no limit), it is cut into blocks of columns.
std::string attention_table(const AttentionMap& map, int width);

}  // namespace heed
