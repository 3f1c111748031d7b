#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"
#include "heed/run/build_shortlist.h"
#include "heed/run/text_options.h"

namespace heed {

/// The format of the table that --dev writes.
enum class CoverageFormat { text, json };

template <>
struct EnumNames<CoverageFormat> {
  static constexpr std::pair<CoverageFormat, std::string_view> values[] = {{CoverageFormat::text, "text"},
                                                                           {CoverageFormat::json, "json"}};
};

/// What the pieces of a vocabulary are: subwords of a type, or the labels and parts of speech of linear trees, which
/// are the words of the mode `trees`.
enum class VocabularyType { words, bpe, unigram, characters, trees };

template <>
struct EnumNames<VocabularyType> {
  static constexpr std::pair<VocabularyType, std::string_view> values[] = {{VocabularyType::words, "words"},
                                                                           {VocabularyType::bpe, "bpe"},
                                                                           {VocabularyType::unigram, "unigram"},
                                                                           {VocabularyType::characters, "char"},
                                                                           {VocabularyType::trees, "trees"}};
};

struct BuildVocabOptions {
  VocabularyType type = VocabularyType::bpe;
  std::optional<std::int64_t> max_size, min_frequency, merges;
  bool total_symbols = false, dict_input = false;
  std::int64_t pad_to_multiple = 1;
  std::optional<double> character_coverage;
  bool byte_fallback = false;
  std::string user_symbols;
  std::string dev, codes_output, counts_output;
  CoverageFormat format = CoverageFormat::text;
  std::vector<std::string> write_vocabulary;
  FirstStageOptions first_stage;
  ShortlistOptions shortlist;
  std::vector<std::string> files, input;
  std::string output = "-";
  int threads = 0;
  Utf8Options utf8;
  CommonOptions common;
  std::vector<std::string> given;  ///< names of the options that the user has set (FieldList::given)

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Vocabulary");
    visit(type,
          {.name = "type",
           .help = "what a piece is: a word, a part of a word (bpe, unigram), a character, or a label of a tree"});
    visit(max_size,
          {.name = "max-size",
           .help = "at most N pieces, including the four reserved ones (8000 for unigram and bpe without --merges)",
           .value = "N",
           .letter = 's',
           .min = 5,
           .max = 1e9});
    visit(min_frequency,
          {.name = "min-frequency",
           .help = "lowest count of a word or character (1), or of a bpe pair or a longer unigram piece (2)",
           .value = "N",
           .min = 1});
    visit(merges, {.name = "merges", .help = "bpe: learn N merge operations", .value = "N", .min = 0});
    visit(total_symbols,
          {.name = "total-symbols",
           .help = "with --merges: N also counts the characters, within words and at the ends of words"});
    visit(
        character_coverage,
        {.name = "character-coverage",
         .help = "leave out the rarest characters; the others make up this share of the text (unigram 0.9995, char 1)",
         .value = "P",
         .min = 0.5,
         .max = 1});
    visit(byte_fallback,
          {.name = "byte-fallback", .help = "unigram: cut unknown characters into pieces for their bytes"});
    visit(
        user_symbols,
        {.name = "user-symbols", .help = "unigram: strings that are always a piece of their own", .value = "A,B,..."});
    visit(pad_to_multiple, {.name = "pad-to-multiple",
                            .help = "add unused pieces until the size is a multiple of N",
                            .value = "N",
                            .min = 1,
                            .max = 65536});
    visit(dev, {.name = "dev",
                .help = "report how vocabularies of a quarter, half, all and twice the size cover this text",
                .value = "FILE",
                .file = FileUse::read});
    visit(format, {.name = "format", .help = "format of the report of --dev, which goes to standard error"});
    first_stage.fields(visit);
    shortlist.fields(visit);
    visit.section("Input and output");
    visit(files,
          {.name = "file", .help = "texts to learn from", .value = "FILE", .file = FileUse::read, .positional = true});
    visit(input, {.name = "input",
                  .help = "text to learn from; the same as FILE without the option",
                  .value = "FILE",
                  .file = FileUse::read,
                  .letter = 'i',
                  .repeated = true});
    visit(dict_input, {.name = "dict-input", .help = "each line of the input is a token and its count"});
    visit(output, {.name = "output",
                   .help = "write the vocabulary to FILE",
                   .value = "FILE",
                   .file = FileUse::written,
                   .letter = 'o'});
    visit(codes_output, {.name = "codes-output",
                         .help = "also write the merges, as subword-nmt's learn-bpe writes them",
                         .value = "FILE",
                         .file = FileUse::written});
    visit(counts_output, {.name = "counts-output",
                          .help = "also write pieces with counts, as subword-nmt's get-vocab writes them",
                          .value = "FILE",
                          .file = FileUse::written});
    visit(write_vocabulary, {.name = "write-vocabulary",
                             .help = "also write the pieces and counts of each input text to a FILE of its own",
                             .value = "FILE",
                             .file = FileUse::written});
    visit(threads, {.name = "threads",
                    .help = "number of threads (0: one for each processor)",
                    .value = "N",
                    .letter = 'j',
                    .min = 0,
                    .max = 1024});
    utf8.fields(visit);
    common.fields(visit);
  }
};

/// Returns the name, purpose, usage and examples of `build-vocab`, and the option names of other toolkits.
ToolInfo build_vocab_tool_info();

/// Runs the program `build-vocab`: learns from the files (or `in`) and writes the vocabulary, or the shortlist, to
/// `out`. Returns the exit code.
int run_build_vocab(const BuildVocabOptions& options, std::istream& in, std::ostream& out, Log& log);

}  // namespace heed
