#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "heed/inspect/attention_map.h"
#include "heed/nn/position_table.h"

namespace heed {

/// Returns the layers' tables that `layer` chooses, "last", "all" or numbers such as "1,3-4", and all tables that
/// layers share. Throws UsageError where `layer` names a layer that has no table of its own.
std::vector<PositionTable> choose_layers(std::vector<PositionTable> tables, const std::string& layer);

/// Returns each table as a map with axes. Where a table has more than `most_columns` columns, the map has every second,
/// third ... column only, among them that of 0.
std::vector<AttentionMap> position_maps(std::span<const PositionTable> tables, std::size_t most_columns);

/// Returns the tables as TSV: a header and one line for each number. The columns are stack, term, layer (0 if all
/// layers share the table), what the rows and the columns of the tables are, such as position and component, and value.
/// Where tables have different axes, the header says row or column.
std::string position_tsv(std::span<const PositionTable> tables);

/// Returns each table as one line with a JSON object: {"stack", "term", "layer", "row_axis", "rows", "column_axis",
/// "columns", "values"}; "values" has one list of numbers for each row.
std::string position_jsonl(std::span<const PositionTable> tables);

}  // namespace heed
