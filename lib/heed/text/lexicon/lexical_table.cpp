#include "heed/text/lexicon/lexical_table.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "heed/base/threads.h"

namespace heed {

void PieceText::add(std::string_view line) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) {
      const std::int32_t number = pieces_.add(line.substr(at, end - at));
      counts_.resize(static_cast<std::size_t>(pieces_.size()));
      ++counts_[static_cast<std::size_t>(number)];
      numbers_.push_back(number);
    }
    at = end + 1;
  }
  ends_.push_back(size());
}

namespace {

/// Estimates the probabilities p(target piece | source piece) of IBM Model 1 by expectation maximisation (EM).
///
/// The model: every target piece of a sentence pair is explained by one source piece of that pair, or by the piece
/// NULL. The E step divides each occurrence of a target piece among the source pieces of the sentence pair, in
/// proportion to their current probabilities. The M step adds up the fractions that each (source piece, target piece)
/// pair has received, and divides them by their sum over all target pieces of the source piece.
///
/// Example: the sentence pairs "das haus" - "the house" and "das buch" - "the book". All probabilities start at 1/3. In
/// the first sentence pair, "house" is divided among "das", "haus" and NULL: 1/3 each. Summed over both sentence pairs,
/// "das" receives 2/3 of "the", 1/3 of "house" and 1/3 of "book", which the M step divides by 4/3: "the" 1/2, "house"
/// 1/4, "book" 1/4. The probabilities of "haus" become "the" 1/2, "house" 1/2. In the second iteration "haus" therefore
/// explains more of "house" than "das" does.
///
/// The order of the work: the probabilities are a sparse matrix with a row for each source piece. A row is unpacked
/// into a dense array (an entry for each target piece), with which all sentences that hold the row's source piece are
/// processed. Sums over the source pieces of a sentence are added row by row.
class Model1 {
 public:
  Model1(const PieceText& source, const PieceText& target, int threads)
      : target_(target), rows_(source.pieces().size() + 1), pool_(threads), dense_(static_cast<std::size_t>(threads)) {
    list_sentences(source);
    order_.resize(static_cast<std::size_t>(rows_));
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::int32_t a, std::int32_t b) { return sentences_of(a).size() > sentences_of(b).size(); });
    for (std::vector<double>& dense : dense_) dense.resize(static_cast<std::size_t>(target.pieces().size()));
    list_pairs();
    inverse_sums_.resize(static_cast<std::size_t>(target.size()));
  }

  /// Does one iteration of expectation maximisation, which replaces all probabilities.
  void iterate() {
    compute_inverse_sums();
    for_rows([&](std::int32_t row, std::vector<double>& dense) { estimate(row, dense); });
  }

  /// Returns the table of probabilities, without the row of the piece NULL. The Model1 object is empty afterwards.
  LexicalTable take() {
    table_.begins.pop_back();
    table_.targets.resize(static_cast<std::size_t>(table_.begins.back()));
    table_.probabilities.resize(table_.targets.size());
    return std::move(table_);
  }

 private:
  /// Lists, for each source piece, the indices of the sentences that hold this piece, in ascending order; a sentence
  /// that holds the piece twice is listed twice. The last list belongs to the piece NULL, which every sentence holds
  /// once.
  void list_sentences(const PieceText& source) {
    starts_.assign(static_cast<std::size_t>(rows_) + 1, 0);
    for (std::size_t i = 0; i < source.counts().size(); ++i) starts_[i + 1] = starts_[i] + source.counts()[i];
    starts_.back() = starts_[starts_.size() - 2] + source.sentences();
    sentences_.resize(static_cast<std::size_t>(starts_.back()));
    std::vector<std::int64_t> next(starts_.begin(), starts_.end() - 1);
    for (std::int64_t s = 0; s < source.sentences(); ++s) {
      const auto put = [&](std::int32_t row) {
        sentences_[static_cast<std::size_t>(next[static_cast<std::size_t>(row)]++)] = static_cast<std::int32_t>(s);
      };
      for (const std::int32_t piece : source.sentence(s)) put(piece);
      put(rows_ - 1);
    }
  }

  /// Returns the indices of the sentences that hold the source piece of the row `row`.
  std::span<const std::int32_t> sentences_of(std::int32_t row) const {
    const auto at = static_cast<std::size_t>(row);
    return {sentences_.data() + starts_[at], static_cast<std::size_t>(starts_[at + 1] - starts_[at])};
  }

  /// Calls work(row, dense) for all rows of the table (one row for each source piece), on all threads. Rows of pieces
  /// that occur in many sentences come first, so that the threads finish at about the same time. `dense` is an array of
  /// the calling thread, with an entry for each target piece.
  template <class Work>
  void for_rows(Work work) {
    std::atomic<std::size_t> next{0};
    pool_.run([&](int thread) {
      for (std::size_t i = next++; i < order_.size(); i = next++)
        work(order_[i], dense_[static_cast<std::size_t>(thread)]);
    });
  }

  /// Fills the table with an entry for each (source piece, target piece) pair that occurs together in a sentence pair,
  /// and gives all entries the same probability.
  void list_pairs() {
    std::vector<std::vector<std::int32_t>> found(static_cast<std::size_t>(rows_));
    for_rows([&](std::int32_t row, std::vector<double>& dense) {
      std::vector<std::int32_t>& list = found[static_cast<std::size_t>(row)];
      for (const std::int32_t s : sentences_of(row))
        for (const std::int32_t piece : target_.sentence(s))
          if (double& seen = dense[static_cast<std::size_t>(piece)]; seen == 0) {
            seen = 1;
            list.push_back(piece);
          }
      for (const std::int32_t piece : list) dense[static_cast<std::size_t>(piece)] = 0;
      std::sort(list.begin(), list.end());
      list.shrink_to_fit();
    });
    std::int64_t pairs = 0;
    for (const auto& list : found) table_.begins.push_back(pairs += static_cast<std::int64_t>(list.size()));
    table_.targets.reserve(static_cast<std::size_t>(pairs));
    for (auto& list : found) {
      table_.targets.insert(table_.targets.end(), list.begin(), list.end());
      list = {};
    }
    table_.probabilities.assign(static_cast<std::size_t>(pairs), 1 / static_cast<float>(target_.pieces().size()));
  }

  /// Sets inverse_sums_, which has an entry for each occurrence of a piece in the target text: 1 / (the sum of the
  /// target piece's probabilities given the source pieces of the same sentence pair). Each thread processes a range of
  /// the sentences.
  void compute_inverse_sums() {
    std::fill(inverse_sums_.begin(), inverse_sums_.end(), 0.0);
    pool_.run([&](int thread) {
      const Slice range = slice_of(target_.sentences(), pool_.size(), thread);
      std::vector<double>& dense = dense_[static_cast<std::size_t>(thread)];
      for (std::int32_t row = 0; row < rows_; ++row) {
        const auto all = sentences_of(row);
        const auto begin = std::lower_bound(all.begin(), all.end(), range.begin);
        const auto end = std::lower_bound(begin, all.end(), range.end);
        if (begin == end) continue;
        const LexicalTable::Row pairs = table_.row(row);
        for (std::size_t i = 0; i < pairs.targets.size(); ++i)
          dense[static_cast<std::size_t>(pairs.targets[i])] = static_cast<double>(pairs.probabilities[i]);
        for (auto s = begin; s != end; ++s) {
          double* sum = inverse_sums_.data() + target_.begin(*s);
          for (const std::int32_t piece : target_.sentence(*s)) *sum++ += dense[static_cast<std::size_t>(piece)];
        }
      }
      for (std::int64_t i = target_.begin(range.begin); i < target_.begin(range.end); ++i)
        inverse_sums_[static_cast<std::size_t>(i)] = 1 / inverse_sums_[static_cast<std::size_t>(i)];
    });
  }

  /// Computes new probabilities for the row `row`, which belongs to one source piece: the expected counts of its target
  /// pieces, divided by their sum. The expected count of a target piece is its old probability times the sum of
  /// inverse_sums_ over the occurrences of the target piece in sentence pairs that hold the source piece.
  void estimate(std::int32_t row, std::vector<double>& dense) {
    const auto at = static_cast<std::size_t>(row);
    const LexicalTable::Row pairs = table_.row(row);
    for (const std::int32_t piece : pairs.targets) dense[static_cast<std::size_t>(piece)] = 0;
    for (const std::int32_t s : sentences_of(row)) {
      const double* inverse = inverse_sums_.data() + target_.begin(s);
      for (const std::int32_t piece : target_.sentence(s)) dense[static_cast<std::size_t>(piece)] += *inverse++;
    }
    double total = 0;
    for (std::size_t i = 0; i < pairs.targets.size(); ++i)
      total += dense[static_cast<std::size_t>(pairs.targets[i])] *= static_cast<double>(pairs.probabilities[i]);
    float* const out = table_.probabilities.data() + table_.begins[at];
    for (std::size_t i = 0; i < pairs.targets.size(); ++i)
      out[i] = static_cast<float>(dense[static_cast<std::size_t>(pairs.targets[i])] / total);
  }

  const PieceText& target_;
  // The number of rows of the table: one for each source piece, and a last row for the piece NULL.
  std::int32_t rows_;
  ThreadPool pool_;
  // An array for each thread, into which for_rows() unpacks rows of the table: an entry for each target piece.
  std::vector<std::vector<double>> dense_;
  std::vector<std::int64_t> starts_;
  std::vector<std::int32_t> sentences_, order_;
  LexicalTable table_;
  std::vector<double> inverse_sums_;
};

}  // namespace

LexicalTable learn_model1(const PieceText& source, const PieceText& target, int iterations, int threads,
                          const std::function<void(int)>& report) {
  Model1 model(source, target, threads);
  for (int i = 1; i <= iterations; ++i) {
    model.iterate();
    if (report) report(i);
  }
  return model.take();
}

LexicalTable count_links(const PieceText& source, const PieceText& target, std::span<const AlignmentLink> links) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  pairs.reserve(links.size());
  for (const AlignmentLink& link : links) pairs.emplace_back(source.number(link.source), target.number(link.target));
  std::sort(pairs.begin(), pairs.end());
  LexicalTable table;
  std::size_t at = 0;
  for (std::int32_t piece = 0; piece < source.pieces().size(); ++piece) {
    const std::size_t first = at;
    std::size_t end = at;
    while (end < pairs.size() && pairs[end].first == piece) ++end;
    while (at < end) {
      const std::size_t begin = at;
      while (at < end && pairs[at] == pairs[begin]) ++at;
      table.targets.push_back(pairs[begin].second);
      table.probabilities.push_back(static_cast<float>(at - begin) / static_cast<float>(end - first));
    }
    table.begins.push_back(static_cast<std::int64_t>(table.targets.size()));
  }
  return table;
}

}  // namespace heed
