#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "heed/text/strings/word_counts.h"

namespace heed {

/// Returns the words and their counts in the order of first occurrence.
inline std::vector<std::pair<std::string, std::int64_t>> listed(const WordCounts& words) {
  std::vector<std::pair<std::string, std::int64_t>> list;
  for (std::size_t i = 0; i < words.size(); ++i) list.emplace_back(words.word(i), words.count(i));
  return list;
}

}  // namespace heed
