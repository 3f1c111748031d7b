#include "heed/run/build_shortlist.h"

#include "heed/base/line_io.h"
#include "heed/base/threads.h"
#include "heed/text/lexicon/shortlist.h"

namespace heed {
namespace {

/// Reads two or three texts line by line at the same time. When one text ends before another, throws an Error with the
/// numbers of lines of both texts.
class ParallelLines {
 public:
  ParallelLines(const std::vector<std::string>& paths, std::istream& in, InvalidUtf8 policy) : lines_(paths.size()) {
    for (const std::string& path : paths) readers_.push_back(open_lines(path, in, policy));
  }

  bool next() {
    const bool more = readers_[0].next(lines_[0]);
    for (std::size_t i = 1; i < readers_.size(); ++i)
      if (readers_[i].next(lines_[i]) != more)
        fail_unequal(readers_[0], readers_[i], "line N of each belongs to line N of the others");
    return more;
  }

  const std::string& line(std::size_t text) const { return lines_[text]; }
  const LineReader& reader(std::size_t text) const { return readers_[text]; }

 private:
  std::vector<LineReader> readers_;
  std::vector<std::string> lines_;
};

}  // namespace

int build_shortlist(const ShortlistOptions& options, int threads, const Utf8Options& utf8, std::istream& in,
                    std::ostream& out, Log& log) {
  std::vector<std::string> paths = options.texts;
  if (!options.alignments.empty()) paths.push_back(options.alignments);
  ParallelLines text(paths, in, utf8.on_invalid_utf8);
  PieceText source, target;
  std::vector<AlignmentLink> links;
  {
    Progress progress(log, "reading", "lines", [&] { return text.reader(0).share(); });
    while (text.next()) {
      source.add(text.line(0));
      target.add(text.line(1));
      progress.advance();
      if (paths.size() < 3) continue;
      const std::int64_t last = source.sentences() - 1;
      for (const AlignmentLink& link :
           read_links(text.line(2), std::ssize(source.sentence(last)), std::ssize(target.sentence(last)), "pieces",
                      text.reader(2).position()))
        links.push_back({source.begin(last) + link.source, target.begin(last) + link.target});
    }
  }
  for (std::size_t i = 0; i < paths.size(); ++i) text.reader(i).report(log);
  for (std::size_t i = 0; i < 2; ++i)
    if ((i == 0 ? source : target).size() == 0)
      throw Error(Position{text.reader(i).name()},
                  "there are no pieces in it (a text with one sentence per line, "
                  "as tokenize -m cuts it, is needed)");
  LexicalTable table;
  if (paths.size() == 3) {
    table = count_links(source, target, links);
  } else {
    Progress progress(log, "learning", "rounds", options.iterations);
    table =
        learn_model1(source, target, options.iterations, thread_count(threads), [&](int done) { progress.to(done); });
  }
  if (table.targets.empty())
    throw Error(Position{text.reader(paths.size() - 1).name()},
                "there is no link in it (lines such as 0-0 1-2 2-1 are needed)");
  write_shortlist(out, source, target, table, {.frequent = options.frequent, .best = options.best});
  log.info(format_count(source.sentences()) + " sentence pairs, " + format_count(source.pieces().size()) + " and " +
           format_count(target.pieces().size()) + " different pieces, " + format_count(std::ssize(table.targets)) +
           " pairs of them");
  return 0;
}

}  // namespace heed
