#include "heed/run/training_text.h"

#include <set>

#include "heed/base/line_io.h"
#include "heed/base/temporary_name.h"
#include "heed/run/train_checks.h"
#include "heed/text/strings/unicode.h"
#include "heed/text/trees/linear_tree.h"

namespace heed {
namespace {

constexpr int kNoLengthLimit = 1 << 30;

/// Returns what a line of the targets is to the same line of the sources, for an error about unequal files.
std::string relation_of_pairs(const ModelConfig& config, TokenMode target_mode) {
  if (is_classifier(config)) return "the label of the image in line i of the other";
  if (image_input(config)) return "the sentence of the image in line i of the other";
  if (target_mode == TokenMode::trees) return "the tree of the sentence in line i of the other";
  return "the translation of line i of the other";
}

/// Opens the files of pairs of a source and a target, which the mode `target_mode` splits into tokens.
PairReader open_pairs(const std::vector<std::string>& files, std::istream& in, const TrainOptions& options,
                      TokenMode target_mode) {
  const InvalidUtf8 policy = options.utf8.on_invalid_utf8;
  if (files.size() == 2)
    return PairReader(files[0], files[1], policy, relation_of_pairs(options.model_options.config, target_mode));
  return options.trees.empty() ? PairReader(files.at(0), in, policy) : PairReader::of_trees(files.at(0), in, policy);
}

/// Returns the files of the training text: source and target, or one file with both.
std::vector<std::string> pair_files(const TrainOptions& options) {
  if (!options.train_sets.empty()) return options.train_sets;
  return {options.tsv.empty() ? options.trees : options.tsv};
}

TextModel source_text(const TrainOptions& options, const std::vector<TextModel>& vocabularies) {
  if (image_input(options.model_options.config)) return TextModel::of_images();
  return vocabularies.front().source();
}

/// Returns the text model of the targets. Labels without a vocabulary are those of the training text, sorted.
TextModel target_text(const TrainOptions& options, const std::vector<TextModel>& vocabularies, std::istream& in) {
  if (!vocabularies.empty()) return vocabularies.back().target();
  std::set<std::string> labels;
  PairReader reader = open_pairs(pair_files(options), in, options, TokenMode::labels);
  for (TextPair pair; reader.next(pair);)
    if (!is_blank(pair.target) && labels.insert(pair.target).second && !TextModel::can_be_label(pair.target))
      throw Error(reader.target_position(), "'" + pair.target + "' cannot be a label");
  if (labels.empty()) throw Error(Position{reader.name()}, "has no labels");
  return TextModel::of_labels({labels.begin(), labels.end()});
}

}  // namespace

TrainingText::TrainingText(const TrainOptions& options, const std::vector<TextModel>& vocabularies, std::istream& in,
                           Log& log, Communicator& ranks, ThreadPool& pool, const InterruptGuard* interrupts)
    : options_(options),
      log_(log),
      ranks_(ranks),
      pool_(pool),
      interrupts_(interrupts),
      source_(source_text(options, vocabularies)),
      target_(target_text(options, vocabularies, in)),
      config_(options.model_options.resolve(source_, target_)) {
  if (options.batch.shuffle_window)
    corpus_.emplace(ranks, ShuffleWindow{*options.batch.shuffle_window,
                                         options.tempdir.empty() ? temporary_folder() : options.tempdir,
                                         static_cast<std::uint64_t>(options.batch.seed)});
  else
    corpus_.emplace(ranks);
  for (std::size_t i = 0; i < options.vocabularies.size(); ++i)
    if (i == 0 || options.vocabularies[i] != options.vocabularies[0])
      tell_of_byte_order_mark(options.vocabularies[i], log);
  check_with_texts(options, config_, source_, target_);
  reader_.emplace(open_pairs(pair_files(options), in, options, target_.steps().mode));
  if (!options.guided_alignment.empty() && !options.links_to_leaves()) alignments_.emplace(options.guided_alignment);
}

void TrainingText::read() {
  const EncodeOptions encode{options_.batch.max_length, options_.batch.on_long, options_.pretokenized};
  hash_ = encode_corpus({.reader = *reader_,
                         .source = source_,
                         .target = target_,
                         .options = encode,
                         .alignments = alignments_ ? &*alignments_ : nullptr,
                         .links_to_leaves = options_.links_to_leaves(),
                         .interrupts = interrupts_},
                        pool_, log_, report_, *corpus_, ranks_);
  reader_.reset();
  alignments_.reset();
  report_.tell(log_, encode);
  if (reads_images()) read_images();
  const BatchOptions& batch = options_.batch;
  if (!batch.bpe_dropout && !batch.sample_alpha) return;
  const SubwordSampling sampling{batch.bpe_dropout.value_or(0), batch.sample_alpha.value_or(0),
                                 static_cast<std::uint64_t>(batch.seed), batch.max_length};
  sampled_.emplace(*corpus_, source_, target_, sampling, pool_);
}

/// Prepares the images that the training text names.
void TrainingText::read_images() {
  const ImageInput& input = *image_input(config_);
  const std::string list = pair_files(options_).front();
  mixing_ = options_.images.mixing(input, static_cast<std::uint64_t>(options_.batch.seed));
  image_reader_.emplace(input, list);
  image_examples_.emplace(corpus_->present(), *image_reader_, image_tokens(config_), image_work(config_),
                          is_classifier(config_), list, &*mixing_);
  image_windows_.emplace(*corpus_, *image_examples_);
  run_together(ranks_, [&] { image_examples_->check_files(pool_); });
}

const Examples& TrainingText::examples() const {
  if (image_examples_) return *image_examples_;
  return corpus_->present();
}

ExampleWindows& TrainingText::windows() {
  if (image_windows_) return *image_windows_;
  if (sampled_) return *sampled_;
  return *corpus_;
}

void TrainingText::read_validation(std::istream& in) {
  if (options_.valid_sets.empty()) return;
  // Validation sentences of any length are kept; only models with learned positions or a fixed length limit the length.
  const EncodeOptions encode{longest_sequence(config_).value_or(kNoLengthLimit), OnLong::crop, options_.pretokenized,
                             "--max-positions or --fixed-length"};
  PairReader reader = open_pairs(options_.valid_sets, in, options_, target_.steps().mode);
  CorpusReport report;
  valid_corpus_ = encode_corpus({.reader = reader,
                                 .source = source_,
                                 .target = target_,
                                 .options = encode,
                                 .target_lines = &valid_lines_,
                                 // Each of several ranks reads the text by itself, so that none of them may stop alone.
                                 .interrupts = ranks_.size() == 1 ? interrupts_ : nullptr},
                                pool_, log_, report);
  report.tell(log_, encode);
  if (target_.steps().mode == TokenMode::trees) read_valid_trees();
  if (!reads_images()) return;
  valid_image_reader_.emplace(*image_input(config_), options_.valid_sets.front());
  valid_images_.emplace(valid_corpus_, *valid_image_reader_, image_tokens(config_), image_work(config_),
                        is_classifier(config_), options_.valid_sets.front());
  valid_images_->check_files(pool_);
}

void TrainingText::read_valid_trees() {
  valid_trees_.emplace(TreeSentences{TreePieces(target_.vocabulary()), {}});
  valid_words_.resize(valid_lines_.size());
  for (std::size_t i = 0; i < valid_lines_.size(); ++i) {
    tree_leaves(valid_lines_[i], valid_words_[i]);
    valid_trees_->words.push_back(words_of_line(valid_words_[i]));
  }
}

const Examples& TrainingText::valid_examples() const {
  if (valid_images_) return *valid_images_;
  return valid_corpus_;
}

}  // namespace heed
