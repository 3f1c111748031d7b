#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/strings/string_ids.h"

namespace heed {

/// Restores the usual case of words with a truecase model of Moses: the spellings of each word that were seen in
/// training, and which of them is the usual one. At the start of a sentence, "The" becomes "the", and "London" stays.
/// Immutable and cheap to copy.
///
/// The model file has a line for each word: `best (count/all) other (count) ...`. Truecaser uses the words of a line
/// and ignores the counts.
class Truecaser {
 public:
  /// Makes a truecaser without a model, for which empty() is true.
  Truecaser() = default;
  /// Makes a truecaser of the text of a model file. Throws Error with `where` (the file) and the line if a line is not
  /// one of a truecase model.
  static Truecaser parse(std::string text, const std::string& where);
  /// Reads a model file. Throws Error as parse() does.
  static Truecaser read(const std::string& path);

  bool empty() const { return !model_; }
  /// The text of the model file, as it was read; empty without a model.
  const std::string& text() const;

  /// Replaces `out` by `tokens` in their usual case, byte for byte as truecase.perl: a word at the start of a sentence
  /// gets its usual spelling; a word elsewhere does so only if its own spelling was never seen. Factors (word|factor)
  /// and tags (<...>) stay. `asr` is the script's -a, for recognised speech without reliable case: all words get their
  /// usual spelling.
  void apply(std::string_view tokens, bool asr, std::string& out) const;

  bool operator==(const Truecaser& other) const { return text() == other.text(); }

 private:
  struct Model;
  std::shared_ptr<const Model> model_;
};

/// Learns a truecase model: counts the spellings of each word, as train-truecaser.perl does. Words at the start of a
/// sentence, and words without a letter that has case, are not counted.
class TruecaseLearner {
 public:
  /// `first_words` is the script's --possiblyUseFirstToken: a word at the start of a sentence counts as well if it has
  /// no capital, and counts as a tenth if it is the only word of its line.
  explicit TruecaseLearner(bool first_words) : first_words_(first_words) {}

  /// Counts the words of a line of tokens.
  void add(std::string_view tokens);

  /// Returns the text of the model file. The script writes words in random order, and picks any of several spellings
  /// that are equally frequent. Here words are sorted by their lower-case bytes, and of equally frequent spellings the
  /// one with the greater bytes is the usual one (the one with fewer capitals).
  std::string text() const;

 private:
  void count(std::string_view word, std::int64_t tenths);

  bool first_words_;
  StringIds spellings_;
  std::vector<std::int64_t> tenths_;  // for each spelling, ten times its count
};

/// Replaces `out` by `tokens` with a capital at the start of each sentence, as detruecase.perl does. White space
/// becomes single spaces.
void detruecase(std::string_view tokens, std::string& out);

}  // namespace heed
