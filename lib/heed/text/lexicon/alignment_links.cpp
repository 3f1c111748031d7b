#include "heed/text/lexicon/alignment_links.h"

#include <algorithm>
#include <charconv>

namespace heed {

std::vector<AlignmentLink> read_links(std::string_view line, std::int64_t sources, std::int64_t targets,
                                      std::string_view unit, const Position& where, LinkMarks marks) {
  std::vector<AlignmentLink> links;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    if (end > at) {
      const char* const last = line.data() + end;
      std::int64_t i = -1, j = -1;
      const auto first = std::from_chars(line.data() + at, last, i);
      const char sign = first.ec == std::errc() && first.ptr != last ? *first.ptr : '\0';
      const bool possible = marks == LinkMarks::possible && (sign == 'p' || sign == '?');
      const bool joined = sign == '-' || possible;
      const auto second = joined ? std::from_chars(first.ptr + 1, last, j) : first;
      const Position position{where.file, where.line, static_cast<std::int64_t>(at) + 1};
      const std::string link = "'" + std::string(line.substr(at, std::min<std::size_t>(end - at, 60))) + "'";
      if (!joined || second.ec != std::errc() || second.ptr != last || i < 0 || j < 0)
        throw Error(position, link + " is no link, source-target from 0 (such as 0-0 1-2" +
                                  (marks == LinkMarks::possible ? ", or 0p0 for a possible one)" : ")"));
      if (i >= sources || j >= targets)
        throw Error(position, link + " leads out of the sentences of " + std::to_string(sources) + " and " +
                                  std::to_string(targets) + ' ' + std::string(unit) + " (align the same two texts)");
      links.push_back({i, j, possible});
    }
    at = end + 1;
  }
  return links;
}

}  // namespace heed
