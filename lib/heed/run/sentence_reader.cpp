#include "heed/run/sentence_reader.h"

#include "heed/data/parallel_text.h"
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
  if (more && tsv_) {
    target.clear();
    if (!source.empty()) split_pair(source_, source, target);  // an empty line has two empty sentences
  }
  return more;
}

void SentenceReader::report(Log& log) const {
  source_.report(log);
  if (target_) target_->report(log);
}

}  // namespace heed
