#include "heed/run/sentence_reader.h"

#include "heed/base/streams.h"
#include "heed/run/inspect_attention.h"

namespace heed {

SentenceReader::SentenceReader(const InspectAttentionOptions& options, std::istream& in)
    : tsv_(options.tsv), source_(open_lines(options.input, in, options.utf8.on_invalid_utf8)) {
  if (!options.target.empty()) target_.emplace(open_lines(options.target, in, options.utf8.on_invalid_utf8));
  if (!options.report.gold.empty()) gold_.emplace(open_lines(options.report.gold, in, InvalidUtf8::replace));
}

bool SentenceReader::next(std::string& source, std::string& target) {
  const bool more = source_.next(source);
  if (target_ && target_->next(target) != more)
    fail_unequal(source_, *target_, "each source line needs its target line");
  if (gold_ && gold_->next(links_) != more)
    fail_unequal(source_, *gold_, "each source line needs its alignment, if only an empty line");
  if (more && tsv_) split(source, target);
  return more;
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
