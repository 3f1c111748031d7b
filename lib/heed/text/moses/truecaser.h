#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/strings/string_ids.h"

namespace heed {

/// Restores the usual case of words with a truecase model of Moses. The model lists, for each word, the spellings that
/// were seen in training, the usual one first. Example: at the start of a sentence, "The" becomes "the", while "London"
/// stays. Immutable and cheap to copy.
///
/// The model file has a line for each word: `usual (count/all) other (count) ...`. Truecaser uses the spellings of a
/// line and ignores the counts.
class Truecaser {
 public:
  /// Makes a truecaser without a model, for which empty() is true.
  Truecaser() = default;
  /// Makes a truecaser from the text of a model file. Throws Error with the file name `where` and the line number if a
  /// line is not a line of a truecase model.
  static Truecaser parse(std::string text, const std::string& where);
  /// Reads a truecase model from the file `path`. Throws Error, like parse(), if a line is not a line of a truecase
  /// model.
  static Truecaser read(const std::string& path);

  bool empty() const { return !model_; }
  /// Returns the text of the model file, as it was read; empty for a truecaser without a model.
  const std::string& text() const;

  /// Replaces `out` by `tokens` in their usual case, byte for byte as Moses' truecase.perl does. A word at the start of
  /// a sentence gets its usual spelling; a word elsewhere gets its usual spelling only if training never saw the
  /// spelling that the word has. The factors of a word (word|factor) and tags (<...>) stay. If `asr` is true (the
  /// script's option -a, for recognised speech without reliable case), all words get their usual spelling.
  void apply(std::string_view tokens, bool asr, std::string& out) const;

  bool operator==(const Truecaser& other) const { return text() == other.text(); }

 private:
  struct Model;
  std::shared_ptr<const Model> model_;
};

/// Learns a truecase model: counts how often each spelling of each word occurs, as Moses' train-truecaser.perl does.
/// Words at the start of a sentence, and words without any upper-case or lower-case letter, are not counted.
class TruecaseLearner {
 public:
  /// If `first_words` is true (the option --possiblyUseFirstToken of train-truecaser.perl), a word at the start of a
  /// sentence is also counted if it starts with a lower-case letter. If it starts with a capital, it is counted, as a
  /// tenth of a word, only if it is the only word of its line.
  explicit TruecaseLearner(bool first_words) : first_words_(first_words) {}

  /// Adds the words of `tokens`, a line of tokens, to the counts.
  void add(std::string_view tokens);

  /// Returns the text of the model file, sorted by the bytes of the words' lower-case forms. train-truecaser.perl
  /// writes the words in random order, and picks any of several equally frequent spellings of a word as the usual one.
  /// text() picks the spelling with the greater bytes, that is, with fewer capitals.
  std::string text() const;

 private:
  void count(std::string_view word, std::int64_t tenths);

  bool first_words_;
  StringIds spellings_;
  // Ten times the count of each spelling, by the spelling's index in spellings_. Ten times, because some words count as
  // a tenth.
  std::vector<std::int64_t> tenths_;
};

/// Replaces `out` by `tokens` with a capital at the start of each sentence, as Moses' detruecase.perl does. Each run of
/// white space becomes a single space.
void detruecase(std::string_view tokens, std::string& out);

}  // namespace heed
