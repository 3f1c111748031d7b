#include "heed/run/position_maps.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "heed/base/error.h"
#include "heed/base/number_text.h"
#include "heed/config/fields.h"
#include "heed/run/number_ranges.h"

namespace heed {

template <>
struct EnumNames<PositionTable::Stack> {
  using enum PositionTable::Stack;
  static constexpr std::pair<PositionTable::Stack, std::string_view> values[] = {
      {encoder, "encoder"}, {decoder, "decoder"}, {both, "both"}};
};

template <>
struct EnumNames<PositionTable::Term> {
  using enum PositionTable::Term;
  static constexpr std::pair<PositionTable::Term, std::string_view> values[] = {{sinusoid, "sinusoid"},
                                                                                {word, "word"},
                                                                                {learned, "learned"},
                                                                                {rotary, "rotary"},
                                                                                {relative_key, "relative_key"},
                                                                                {relative_value, "relative_value"},
                                                                                {alibi, "alibi"},
                                                                                {t5, "t5"}};
};

namespace {

/// What a picture says about a term: the caption, and what its numbers are.
struct TermText {
  std::string_view caption, values;
};

TermText text_of(PositionTable::Term term) {
  using enum PositionTable::Term;
  switch (term) {
    case sinusoid:
      return {"sinusoidal positions", "added to the embedding"};
    case word:
      return {"numbers of words", "added to the embedding"};
    case learned:
      return {"learned positions", "added to the embedding"};
    case rotary:
      return {"rotary positions", "cosine (even), sine (odd)"};
    case relative_key:
      return {"relative keys", "added to the key"};
    case relative_value:
      return {"relative values", "added to the value"};
    case alibi:
      return {"ALiBi", "added to the logit"};
    case t5:
      return {"T5 bias", "added to the logit"};
  }
  throw Error("internal: unknown term of positions");
}

std::string caption(const PositionTable& table) {
  std::string out(text_of(table.term).caption);
  if (table.stack != PositionTable::Stack::both) out += ", " + std::string(enum_name(table.stack));
  if (table.layer > 0) out += ", layer " + std::to_string(table.layer);
  return out;
}

std::string axis_text(std::string_view axis) {
  return axis == "distance" ? "distance (key - query)" : std::string(axis);
}

}  // namespace

std::vector<PositionTable> choose_layers(std::vector<PositionTable> tables, const std::string& layer) {
  if (layer == "all") return tables;
  const auto last_of = [&](PositionTable::Stack stack) {
    int last = 0;
    for (const PositionTable& table : tables)
      if (table.stack == stack) last = std::max(last, table.layer);
    return last;
  };
  std::vector<PositionTable> out;
  if (layer == "last") {
    for (const PositionTable& table : tables)
      if (table.layer == 0 || table.layer == last_of(table.stack)) out.push_back(table);
    return out;
  }
  const NumberRanges numbers = NumberRanges::parse("layer", layer);
  const int most = std::max(last_of(PositionTable::Stack::encoder), last_of(PositionTable::Stack::decoder));
  if (most == 0)
    throw UsageError("--layer " + layer + ": all layers of this model share the encoding of positions (leave it out)");
  if (numbers.greatest_named() > most)
    throw UsageError("--layer " + std::to_string(numbers.greatest_named()) + ": the model has " + std::to_string(most) +
                     " such layers");
  for (PositionTable& table : tables)
    if (table.layer == 0 || numbers.contains(table.layer)) out.push_back(std::move(table));
  return out;
}

std::vector<AttentionMap> position_maps(std::span<const PositionTable> tables, std::size_t most_columns) {
  std::vector<AttentionMap> maps;
  for (const PositionTable& table : tables) {
    const std::int64_t step = 1 + (table.columns - 1) / static_cast<std::int64_t>(most_columns);
    const std::int64_t first = table.first_column <= 0 ? -table.first_column % step : 0;
    AttentionMap map{.kind = std::string(enum_name(table.stack)), .layer = table.layer};
    for (std::int64_t r = 0; r < table.rows; ++r) map.rows.push_back(std::to_string(table.first_row + r));
    for (std::int64_t c = first; c < table.columns; c += step)
      map.columns.push_back(std::to_string(table.first_column + c));
    for (std::int64_t r = 0; r < table.rows; ++r)
      for (std::int64_t c = first; c < table.columns; c += step)
        map.weights.push_back(table.values[static_cast<std::size_t>(r * table.columns + c)]);
    map.axes = NumberAxes{.caption = caption(table),
                          .rows = axis_text(table.row_axis),
                          .columns = axis_text(table.column_axis),
                          .values = std::string(text_of(table.term).values)};
    map.check();
    maps.push_back(std::move(map));
  }
  return maps;
}

std::string position_tsv(std::span<const PositionTable> tables) {
  const auto axis = [&](std::string_view PositionTable::*name, const char* if_different) {
    const bool same =
        std::ranges::all_of(tables, [&](const PositionTable& table) { return table.*name == tables[0].*name; });
    return same ? std::string(tables[0].*name) : if_different;
  };
  std::string out = "stack\tterm\tlayer\t" + axis(&PositionTable::row_axis, "row") + '\t' +
                    axis(&PositionTable::column_axis, "column") + "\tvalue\n";
  for (const PositionTable& table : tables) {
    const std::string start = std::string(enum_name(table.stack)) + '\t' + std::string(enum_name(table.term)) + '\t' +
                              std::to_string(table.layer) + '\t';
    for (std::int64_t r = 0; r < table.rows; ++r)
      for (std::int64_t c = 0; c < table.columns; ++c)
        out += start + std::to_string(table.first_row + r) + '\t' + std::to_string(table.first_column + c) + '\t' +
               number_text("%.6f", static_cast<double>(table.values[static_cast<std::size_t>(r * table.columns + c)])) +
               '\n';
  }
  return out;
}

std::string position_jsonl(std::span<const PositionTable> tables) {
  std::string out;
  for (const PositionTable& table : tables) {
    nlohmann::ordered_json object;
    object["stack"] = enum_name(table.stack);
    object["term"] = enum_name(table.term);
    object["layer"] = table.layer;
    const auto axis = [&](const char* name, std::string_view value, const char* list, std::int64_t first,
                          std::int64_t count) {
      object[name] = value;
      auto& numbers = object[list] = nlohmann::ordered_json::array();
      for (std::int64_t i = 0; i < count; ++i) numbers.push_back(first + i);
    };
    axis("row_axis", table.row_axis, "rows", table.first_row, table.rows);
    axis("column_axis", table.column_axis, "columns", table.first_column, table.columns);
    auto& values = object["values"] = nlohmann::ordered_json::array();
    for (std::int64_t r = 0; r < table.rows; ++r) {
      auto row = nlohmann::ordered_json::array();
      for (std::int64_t c = 0; c < table.columns; ++c)
        row.push_back(
            std::round(static_cast<double>(table.values[static_cast<std::size_t>(r * table.columns + c)]) * 1e6) / 1e6);
      values.push_back(std::move(row));
    }
    out += object.dump() + '\n';
  }
  return out;
}

}  // namespace heed
