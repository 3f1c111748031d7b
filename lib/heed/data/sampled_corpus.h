#pragma once

#include <cstdint>
#include <vector>

#include "heed/base/threads.h"
#include "heed/data/parallel_corpus.h"
#include "heed/text/text_model.h"

namespace heed {

/// How the pieces of a training text are drawn anew in each epoch (subword regularisation).
struct SubwordSampling {
  double dropout = 0;  ///< BPE: the probability that a merge is left out (BPE-dropout, Provilkov et al. 2020)
  double alpha = 0;    ///< unigram models: segmentations are drawn with a probability to the power alpha (Kudo 2018)
  std::uint64_t seed = 1;
  int max_length = 256;  ///< the greatest number of tokens of a side, </s> included
};

/// The sentence pairs of another ParallelWindows object, cut into pieces that are drawn anew in each epoch. The pieces
/// depend on the seed, the epoch and the line number of the sentence only, and not on the number of threads or on an
/// interruption of the training.
///
/// A sentence is joined to its tokens and cut into pieces again. The sentence keeps its old pieces in two cases. First,
/// the old pieces do not tell the text of the sentence: one of them is unknown (`<unk>`), or the joined tokens are
/// usually cut into other pieces, because the sentence was cropped within a word, or because a word of the text ends in
/// BPE's separator. Second, the new pieces do not fit: one of them is unknown, they are too many, or they make more or
/// fewer words than the old ones. In an aligned corpus, all new pieces of a word get the links of the word.
class SampledCorpus final : public ExampleWindows {
 public:
  /// The other objects must outlive this one. The windows are those of `corpus`.
  SampledCorpus(ParallelWindows& corpus, const TextModel& source, const TextModel& target,
                const SubwordSampling& sampling, ThreadPool& pool)
      : corpus_(corpus), source_(source), target_(target), sampling_(sampling), pool_(pool) {}

  std::int64_t windows() const override { return corpus_.windows(); }
  bool varies() const override { return true; }
  const ParallelCorpus& load(std::int64_t epoch, std::int64_t window) override;

 private:
  void add_cut_again(const ParallelCorpus& pairs, std::int64_t pair, std::int64_t epoch, ParallelCorpus& out) const;
  std::vector<std::int32_t> cut_again(const TextModel& model, std::span<const std::int32_t> ids, std::int64_t epoch,
                                      std::int64_t line, bool is_target) const;

  ParallelWindows& corpus_;
  const TextModel &source_, &target_;
  SubwordSampling sampling_;
  ThreadPool& pool_;
  ParallelCorpus present_;
};

}  // namespace heed
