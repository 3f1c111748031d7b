#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/signals.h"
#include "heed/base/threads.h"
#include "heed/data/encode_corpus.h"
#include "heed/data/image_corpus.h"
#include "heed/data/sampled_corpus.h"
#include "heed/run/train.h"
#include "heed/train/translate_examples.h"

namespace heed {

/// What `train` learns from and validates on: pairs of texts, sentences and their trees, or images and their labels or
/// sentences.
class TrainingText {
 public:
  /// Opens the training text, of which only labels without a vocabulary are read. Throws UsageError where the options
  /// contradict the vocabularies or the model, and Error for files that cannot be read. `vocabularies` is what
  /// read_vocabularies() returned. If `interrupts` is not null, a signal that it has caught ends read() and
  /// read_validation(), which throw Interrupted. All references must outlive this object.
  TrainingText(const TrainOptions& options, const std::vector<TextModel>& vocabularies, std::istream& in, Log& log,
               Communicator& ranks, ThreadPool& pool, const InterruptGuard* interrupts);

  /// Reads the training text. Collective. Call it before everything else.
  void read();
  /// Reads the validation text from the files, or from `in`.
  void read_validation(std::istream& in);

  const TextModel& source() const { return source_; }
  const TextModel& target() const { return target_; }
  /// Returns the config of the model that the options describe, for these text models.
  const ModelConfig& config() const { return config_; }
  const TrainingCorpus& corpus() const { return *corpus_; }
  const CorpusReport& report() const { return report_; }
  /// Returns a hash of the training text, which is the same for all ranks that have read the same text.
  std::uint64_t hash() const { return hash_; }
  /// Returns the examples of the window that is loaded.
  const Examples& examples() const;
  /// Returns what is learnt from.
  ExampleWindows& windows();

  /// Returns the pairs of the validation text; none without one.
  const ParallelCorpus& valid_corpus() const { return valid_corpus_; }
  /// Returns what is validated on.
  const Examples& valid_examples() const;
  /// Returns the targets of the validation text as they were read.
  const std::vector<std::string>& valid_lines() const { return valid_lines_; }
  /// Returns the words of the validation trees; null if the targets are no trees.
  const TreeSentences* valid_trees() const { return valid_trees_ ? &*valid_trees_ : nullptr; }

 private:
  bool reads_images() const { return image_input(config_) != nullptr; }
  void read_images();
  void read_valid_trees();

  const TrainOptions& options_;
  Log& log_;
  Communicator& ranks_;
  ThreadPool& pool_;
  const InterruptGuard* interrupts_;
  TextModel source_, target_;
  ModelConfig config_;
  CorpusReport report_;
  std::optional<PairReader> reader_;
  std::optional<LineReader> alignments_;
  std::optional<TrainingCorpus> corpus_;
  std::uint64_t hash_ = 0;
  // What is learnt from with --bpe-dropout or --sample-alpha, instead of corpus_.
  std::optional<SampledCorpus> sampled_;
  // What is learnt from and validated on if the sources are images, instead of corpus_ and valid_corpus_.
  std::optional<ImageMixing> mixing_;
  std::optional<ImageReader> image_reader_, valid_image_reader_;
  std::optional<ImageExamples> image_examples_, valid_images_;
  std::optional<ImageWindows> image_windows_;
  ParallelCorpus valid_corpus_;
  std::vector<std::string> valid_lines_;
  // The words of the validation trees: lines of words, to which valid_trees_ refers.
  std::vector<std::string> valid_words_;
  std::optional<TreeSentences> valid_trees_;
};

}  // namespace heed
