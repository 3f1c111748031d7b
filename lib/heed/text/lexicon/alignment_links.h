#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/base/error.h"

namespace heed {

/// A link of a word alignment between a word (or piece) of the source text and one of the target text.
struct AlignmentLink {
  std::int64_t source, target;
  bool possible = false;  ///< whether people were not sure about the link
};

/// Whether a link may be marked as possible: 0p0 or 0?0 instead of 0-0.
enum class LinkMarks { none, possible };

/// Reads the links of one sentence pair in the format of fast_align, Moses and Pharaoh: "0-0 1-2", the source first,
/// counted from 0. `sources` and `targets` are the numbers of words of the two sentences; `unit` says what they are for
/// messages, such as "pieces". Throws Error with the position of a link that is malformed or outside the sentences;
/// `where` is the file and the line.
std::vector<AlignmentLink> read_links(std::string_view line, std::int64_t sources, std::int64_t targets,
                                      std::string_view unit, const Position& where, LinkMarks marks = LinkMarks::none);

}  // namespace heed
