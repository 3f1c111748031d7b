#include "heed/run/sentence_reader.h"

#include "heed/base/streams.h"
#include "heed/run/inspect_attention.h"

namespace heed {
namespace {

LineReader open(const std::string& path, std::istream& in, InvalidUtf8 policy) {
  return path == "-" ? LineReader(in, input_name(path), policy) : LineReader(path, policy);
}

}  // namespace

std::string line_count(std::int64_t count) {
  return format_count(count) + (count == 1 ? " line" : " lines");
}

SentenceReader::SentenceReader(const InspectAttentionOptions& options, std::istream& in)
    : tsv_(options.tsv), source_(open(options.input, in, options.utf8.on_invalid_utf8)) {
  if (!options.target.empty()) target_.emplace(open(options.target, in, options.utf8.on_invalid_utf8));
  if (!options.report.gold.empty()) gold_.emplace(open(options.report.gold, in, InvalidUtf8::replace));
}

bool SentenceReader::next(std::string& source, std::string& target) {
  const bool more = source_.next(source);
  if (target_ && target_->next(target) != more) fail_unequal(*target_, "each source line needs its target line");
  if (gold_ && gold_->next(links_) != more)
    fail_unequal(*gold_, "each source line needs its alignment, if only an empty line");
  if (more && tsv_) split(source, target);
  return more;
}

void SentenceReader::fail_unequal(LineReader& other, const char* rule) {
  LineReader& longer = source_.line_number() > other.line_number() ? source_ : other;
  const LineReader& shorter = &longer == &source_ ? other : source_;
  for (std::string line; longer.next(line);) {
  }
  throw Error(Position{shorter.name()}, "has " + line_count(shorter.line_number()) + ", but " + longer.name() +
                                            " has " + line_count(longer.line_number()) + " (" + rule + ")");
}

/// Splits a TSV line at its TAB. An empty line gives two empty sentences.
void SentenceReader::split(std::string& source, std::string& target) const {
  target.clear();
  if (source.empty()) return;
  const std::size_t tab = source.find('\t');
  if (tab == std::string::npos) throw Error(source_.position(), "no TAB in this line (a line is: source TAB target)");
  const std::size_t second = source.find('\t', tab + 1);
  if (second != std::string::npos)
    throw Error(source_.position(static_cast<std::int64_t>(second) + 1),
                "more than two columns (a line is: source TAB target; cut -f1,2 picks two)");
  target.assign(source, tab + 1);
  source.resize(tab);
}

void SentenceReader::report(Log& log) const {
  source_.report(log);
  if (target_) target_->report(log);
}

}  // namespace heed
