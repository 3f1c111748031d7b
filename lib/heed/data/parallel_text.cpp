#include "heed/data/parallel_text.h"

#include <algorithm>

#include "heed/text/trees/linear_tree.h"

namespace heed {

PairReader::PairReader(const std::string& source_path, const std::string& target_path, InvalidUtf8 policy,
                       std::string relation)
    : source_(std::make_unique<LineReader>(source_path, policy)),
      target_(std::make_unique<LineReader>(target_path, policy)),
      relation_(std::move(relation)) {}

PairReader::PairReader(const std::string& tsv_path, std::istream& in, InvalidUtf8 policy)
    : source_(std::make_unique<LineReader>(open_lines(tsv_path, in, policy))) {}

PairReader PairReader::of_trees(const std::string& path, std::istream& in, InvalidUtf8 policy) {
  PairReader reader(path, in, policy);
  reader.trees_ = true;
  return reader;
}

std::string PairReader::name() const {
  return target_ ? source_->name() + " + " + target_->name() : source_->name();
}

void split_pair(const LineReader& reader, std::string& line, std::string& target) {
  const std::size_t tab = line.find('\t');
  if (tab == std::string::npos) throw Error(reader.position(), "no TAB in this line (a line is: source TAB target)");
  const std::size_t second = line.find('\t', tab + 1);
  if (second != std::string::npos)
    throw Error(reader.position(static_cast<std::int64_t>(second) + 1),
                "more than two columns (a line is: source TAB target; cut -f1,2 picks two)");
  target.assign(line, tab + 1);
  line.resize(tab);
}

bool PairReader::next(TextPair& pair) {
  if (target_) {
    const bool source = source_->next(pair.source), target = target_->next(pair.target);
    if (source != target) fail_unequal(*source_, *target_, "line i of one has to be " + relation_);
    return source;
  }
  if (trees_) {
    if (!source_->next(pair.target)) return false;
    try {
      tree_leaves(pair.target, pair.source);
    } catch (const LineError& error) {
      throw error.at(source_->name(), source_->line_number(), pair.target);
    }
    return true;
  }
  if (!source_->next(pair.source)) return false;
  split_pair(*source_, pair.source, pair.target);
  return true;
}

std::int64_t PairReader::first_invalid_line() const {
  const std::int64_t source = source_->first_invalid_line(), target = target_ ? target_->first_invalid_line() : 0;
  return source == 0 || target == 0 ? std::max(source, target) : std::min(source, target);
}

void PairReader::report(Log& log) const {
  source_->report(log);
  if (target_) target_->report(log);
}

}  // namespace heed
