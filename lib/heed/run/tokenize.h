#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"
#include "heed/run/text_options.h"

namespace heed {

/// The format of a line of tokens in the output. With --detokenize, the format (piece or id) of the input.
enum class TokenFormat { piece, id, tsv, jsonl };

template <>
struct EnumNames<TokenFormat> {
  static constexpr std::pair<TokenFormat, std::string_view> values[] = {
      {TokenFormat::piece, "piece"}, {TokenFormat::id, "id"}, {TokenFormat::tsv, "tsv"}, {TokenFormat::jsonl, "jsonl"}};
};

struct TokenizeOptions {
  std::string model, train_truecaser;
  bool first_words = false;
  bool detokenize = false, normalize_only = false, uppercase_first = false, detruecase = false;
  bool check = false, stats = false;
  FirstStageOptions first_stage;
  std::string codes, separator = "@@", vocabulary;
  std::optional<std::int64_t> merges, vocabulary_threshold;
  std::vector<std::string> glossaries;
  double dropout = 0;
  std::optional<double> sample_alpha;
  std::int64_t n_best = 0;
  std::string extra_options;
  bool bytes = false;
  std::int64_t seed = 1;
  TokenFormat output_format = TokenFormat::piece;
  std::string input = "-", output = "-";
  int threads = 0;
  Utf8Options utf8;
  CommonOptions common;
  std::vector<std::string> given;  ///< names of the options that the user has set (FieldList::given)

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("What to do");
    visit(model, {.name = "model",
                  .help = "do exactly what this vocabulary, checkpoint or SentencePiece model stores",
                  .value = "MODEL",
                  .file = FileUse::read,
                  .letter = 'm'});
    visit(detokenize, {.name = "detokenize", .help = "turn tokens (pieces, ids) back into text", .letter = 'd'});
    visit(normalize_only,
          {.name = "normalize-only", .help = "with a SentencePiece model: write the normalised text, not its pieces"});
    visit(uppercase_first, {.name = "uppercase-first", .help = "with -d: write a capital at the start of every line"});
    visit(detruecase, {.name = "detruecase", .help = "with -d: write a capital at the start of every sentence"});
    visit(train_truecaser, {.name = "train-truecaser",
                            .help = "learn a truecase model, and write it to FILE instead of writing tokens",
                            .value = "FILE",
                            .file = FileUse::written});
    visit(first_words, {.name = "possibly-use-first-token",
                        .help = "with --train-truecaser: also count a sentence's first word that has no capital"});
    visit(check, {.name = "check",
                  .help = "tokenise and detokenise, write the numbers of the lines that change; exit with 1 if any"});
    visit(stats,
          {.name = "stats", .help = "report the numbers of lines, tokens, pieces and unknown pieces at the end"});
    first_stage.fields(visit);
    visit.section("Subwords");
    visit(codes, {.name = "codes",
                  .help = "cut words by the merges in FILE (of subword-nmt or build-vocab)",
                  .value = "FILE",
                  .file = FileUse::read,
                  .letter = 'c'});
    visit(merges, {.name = "merges", .help = "use only the first N merges of --codes", .value = "N", .min = 0});
    visit(separator, {.name = "separator",
                      .help = "mark at the end of every piece but the last of a word; -d joins pieces at this mark",
                      .value = "STR"});
    visit(vocabulary, {.name = "vocabulary",
                       .help = "undo merges whose piece is not in FILE, which lists pieces with counts",
                       .value = "FILE",
                       .file = FileUse::read});
    visit(vocabulary_threshold, {.name = "vocabulary-threshold",
                                 .help = "ignore the pieces of --vocabulary with a count below N",
                                 .value = "N"});
    visit(glossaries, {.name = "glossaries",
                       .help = "regular expressions whose matches within words are pieces that --codes does not cut",
                       .value = "REGEX"});
    visit(dropout, {.name = "dropout",
                    .help = "leave out each merge with probability P, drawn again for each word, for training text",
                    .value = "P",
                    .min = 0,
                    .max = 1});
    visit(bytes, {.name = "bytes",
                  .help = "the merges of --codes are of bytes, not characters, even if the file does not say so"});
    visit(sample_alpha,
          {.name = "sample-alpha",
           .help = "with a unigram model: draw a segmentation, each with a probability proportional to p^A",
           .value = "A",
           .min = 0});
    visit(n_best, {.name = "n-best",
                   .help = "with a unigram model: write the N most probable segmentations with their scores",
                   .value = "N",
                   .min = 0,
                   .max = 512});
    visit(extra_options,
          {.name = "extra-options",
           .help = "with a SentencePiece model: changes to make to the pieces, such as reverse:bos:eos, or unk",
           .value = "LIST"});
    visit(seed, {.name = "seed",
                 .help = "seed of the random numbers; other lines do not change those of a line",
                 .value = "N"});
    visit.section("Input and output");
    visit(output_format,
          {.name = "output-format",
           .help = "how tokens are written (with -d: read); tsv and jsonl add the bytes of each piece in the line"});
    visit(input, {.name = "input",
                  .help = "read FILE; a name that ends in .gz is decompressed",
                  .value = "FILE",
                  .file = FileUse::read,
                  .letter = 'i'});
    visit(output, {.name = "output",
                   .help = "write FILE; a name that ends in .gz is compressed",
                   .value = "FILE",
                   .file = FileUse::written,
                   .letter = 'o'});
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

/// Returns the name, purpose, usage and examples of `tokenize`, and the option names of other toolkits.
ToolInfo tokenize_tool_info();

/// Runs the program `tokenize`: each line of the input (or `in`) gives a line of the output (or `out`). Returns the
/// exit code: 1 when --check finds lines that detokenising does not restore.
int run_tokenize(const TokenizeOptions& options, std::istream& in, std::ostream& out, Log& log);

}  // namespace heed
