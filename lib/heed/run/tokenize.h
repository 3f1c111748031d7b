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
                  .help = "do exactly what this vocabulary or checkpoint stores",
                  .value = "MODEL",
                  .letter = 'm'});
    visit(detokenize, {.name = "detokenize", .help = "from tokens (pieces, ids) back to text", .letter = 'd'});
    visit(normalize_only,
          {.name = "normalize-only", .help = "with a SentencePiece model: write the normalised text, not its pieces"});
    visit(uppercase_first, {.name = "uppercase-first", .help = "with -d: a capital at the start of every line"});
    visit(detruecase, {.name = "detruecase", .help = "with -d: a capital at the start of every sentence"});
    visit(train_truecaser, {.name = "train-truecaser",
                            .help = "learn a truecase model of the tokens and write it to FILE, instead of the tokens",
                            .value = "FILE"});
    visit(first_words, {.name = "possibly-use-first-token",
                        .help = "with --train-truecaser: count words without a capital also where a sentence starts"});
    visit(check,
          {.name = "check", .help = "write the numbers of the lines that do not come back the same; exit 1 if any"});
    visit(stats,
          {.name = "stats", .help = "tell at the end how many lines, tokens, pieces and unknown pieces there were"});
    first_stage.fields(visit);
    visit.section("Subwords");
    visit(codes, {.name = "codes",
                  .help = "cut words with the merges of this subword-nmt file",
                  .value = "FILE",
                  .letter = 'c'});
    visit(merges, {.name = "merges", .help = "use the first N merges of --codes only", .value = "N", .min = 0});
    visit(
        separator,
        {.name = "separator", .help = "ends every piece but the last of a word (with -d: joins them)", .value = "STR"});
    visit(vocabulary, {.name = "vocabulary",
                       .help = "undo merges that lead to pieces not in this file of pieces with counts",
                       .value = "FILE"});
    visit(vocabulary_threshold,
          {.name = "vocabulary-threshold", .help = "nor to pieces with a lower count in --vocabulary", .value = "N"});
    visit(glossaries, {.name = "glossaries",
                       .help = "regular expressions: matches within words are pieces of their own, not cut by --codes",
                       .value = "REGEX"});
    visit(dropout, {.name = "dropout",
                    .help = "leave out each merge with probability P, anew for each word: for training text",
                    .value = "P",
                    .min = 0,
                    .max = 1});
    visit(bytes,
          {.name = "bytes", .help = "--codes merges bytes, not characters; also where the file does not say so"});
    visit(sample_alpha, {.name = "sample-alpha",
                         .help = "with a unigram model: draw a segmentation, each with probability p^A / sum",
                         .value = "A",
                         .min = 0});
    visit(n_best, {.name = "n-best",
                   .help = "with a unigram model: the N most probable segmentations, with their scores",
                   .value = "N",
                   .min = 0,
                   .max = 512});
    visit(extra_options, {.name = "extra-options",
                          .help = "with a SentencePiece model: change the pieces by reverse, bos, eos or unk (several "
                                  "with a colon between them)",
                          .value = "LIST"});
    visit(seed, {.name = "seed", .help = "of the random numbers; a line's depend on its number only", .value = "N"});
    visit.section("Input and output");
    visit(output_format, {.name = "output-format",
                          .help = "write tokens as pieces or as ids of the model (with -d: read them so); tsv and "
                                  "jsonl add where each came from in the line"});
    visit(input, {.name = "input", .help = "read FILE (.gz too)", .value = "FILE", .letter = 'i'});
    visit(output, {.name = "output", .help = "write FILE (.gz too)", .value = "FILE", .letter = 'o'});
    visit(threads, {.name = "threads",
                    .help = "threads to work with (0: all)",
                    .value = "N",
                    .letter = 'j',
                    .min = 0,
                    .max = 1024});
    utf8.fields(visit);
    common.fields(visit);
  }
};

extern const ToolInfo kTokenizeTool;

/// Runs the program `tokenize`: each line of the input (or `in`) gives a line of the output (or `out`). Returns the
/// exit code: 1 when --check finds lines that detokenising does not restore.
int run_tokenize(const TokenizeOptions& options, std::istream& in, std::ostream& out, Log& log);

}  // namespace heed
