#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"
#include "heed/decode/search.h"
#include "heed/decode/speculative_model.h"
#include "heed/tensor/context.h"

namespace heed {

/// The treatment of a line with more than --max-length pieces.
enum class OverlongLine { crop, copy, empty, fail };

template <>
struct EnumNames<OverlongLine> {
  static constexpr std::pair<OverlongLine, std::string_view> values[] = {{OverlongLine::crop, "crop"},
                                                                         {OverlongLine::copy, "copy"},
                                                                         {OverlongLine::empty, "empty"},
                                                                         {OverlongLine::fail, "fail"}};
};

/// The treatment of a line whose image cannot be read: an error, or an empty line.
enum class BadImage { fail, empty };

template <>
struct EnumNames<BadImage> {
  static constexpr std::pair<BadImage, std::string_view> values[] = {{BadImage::fail, "fail"},
                                                                     {BadImage::empty, "empty"}};
};

template <>
struct EnumNames<Precision> {
  static constexpr std::pair<Precision, std::string_view> values[] = {
      {Precision::float32, "float32"}, {Precision::bfloat16, "bfloat16"}, {Precision::int8, "int8"}};
};

/// The options of the program `translate`.
struct TranslateOptions {
  std::vector<std::string> models;
  std::string input = "-", output = "-";
  SearchOptions search;
  bool resume = false;
  std::string score;
  bool scores = false, word_scores = false;
  std::string alignment, shortlist, draft_model;
  int draft_length = DraftLimits().length;
  bool pretokenized = false, no_detokenize = false;
  int max_length = 1000;
  OverlongLine on_long = OverlongLine::crop;
  BadImage on_bad_image = BadImage::fail;
  int mini_batch = 0;
  int mini_batch_words = 0;
  int maxi_batch = 0;
  bool stats = false;
  Precision precision = Precision::float32;
  std::string device = "auto";
  int threads = 0;
  Utf8Options utf8;
  CommonOptions common;
  std::vector<std::string> given;  ///< names of the options that the user has set (FieldList::given)

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Input and output");
    visit(models, {.name = "models",
                   .help = "checkpoint that train wrote; several are an ensemble",
                   .value = "MODEL.h5",
                   .file = FileUse::read,
                   .letter = 'm',
                   .alias = "model"});
    visit(input,
          {.name = "input", .help = "translate this file", .value = "FILE", .file = FileUse::read, .letter = 'i'});
    visit(output, {.name = "output",
                   .help = "write to FILE, which appears when it is complete",
                   .value = "FILE",
                   .file = FileUse::written,
                   .letter = 'o'});
    visit(resume, {.name = "resume", .help = "go on with a job of -i and -o that was killed (-o FILE.partial)"});
    visit(scores, {.name = "scores", .help = "print the score of each line after the line"});
    visit(word_scores, {.name = "word-scores", .help = "print the log-probability of each piece after the line"});
    visit(alignment,
          {.name = "alignment",
           .help = "print the source tokens that each target token attends to: hard, soft, or weights of at least T",
           .value = "hard|soft|T",
           .implicit = "hard"});
    visit(score, {.name = "score",
                  .help = "score the translations in REF instead of translating",
                  .value = "REF",
                  .file = FileUse::read});
    visit(pretokenized,
          {.name = "pretokenized", .help = "the input is tokens separated by spaces, not yet cut into pieces"});
    visit(no_detokenize, {.name = "no-detokenize", .help = "print tokens separated by spaces, instead of text"});
    utf8.fields(visit);
    search.fields(visit);
    visit.section("Limits");
    visit(max_length, {.name = "max-length",
                       .help = "longest input line, in pieces; 0: no limit",
                       .value = "N",
                       .min = 0,
                       .max = 1e6});
    visit(on_long,
          {.name = "on-long",
           .help = "what to do with a longer line: translate its beginning, copy it, write an empty line, or fail"});
    visit(on_bad_image, {.name = "on-bad-image",
                         .help = "what to do with a line whose image cannot be read: fail, or write an empty line"});
    visit.section("Speed");
    visit(precision,
          {.name = "precision", .help = "arithmetic of matrix products: int8 is the fastest, float32 the most exact"});
    visit(device, {.name = "device",
                   .help = "compute on the CPU or on a GPU: auto takes a GPU where there is one",
                   .value = "auto|cpu|cuda:N"});
    visit(shortlist, {.name = "shortlist",
                      .help = "use only target pieces that FILE (of build-vocab --shortlist) lists for a line's pieces",
                      .value = "FILE",
                      .file = FileUse::read});
    visit(draft_model, {.name = "draft-model",
                        .help = "small model that guesses ahead for a line that is translated alone, with -b 1",
                        .value = "DRAFT.h5",
                        .file = FileUse::read});
    visit(draft_length, {.name = "draft-length",
                         .help = "largest number of pieces that --draft-model guesses at a time",
                         .value = "N",
                         .min = 1,
                         .max = 100});
    visit(mini_batch, {.name = "mini-batch",
                       .help = "largest number of sentences in a batch; 0 adapts to the device",
                       .value = "N",
                       .min = 0,
                       .max = 1e6});
    visit(mini_batch_words, {.name = "mini-batch-words",
                             .help = "largest number of source pieces in a batch; 0 adapts to beam size and device",
                             .value = "N",
                             .min = 0,
                             .max = 1e8});
    visit(maxi_batch, {.name = "maxi-batch",
                       .help = "largest number of lines read ahead and sorted by length; 0 adapts to the device",
                       .value = "N",
                       .min = 0,
                       .max = 1e7});
    visit(threads, {.name = "threads",
                    .help = "number of threads (0: one for each processor)",
                    .value = "N",
                    .letter = 'j',
                    .min = 0,
                    .max = 1024});
    visit(stats, {.name = "stats", .help = "report how much was translated and how fast"});
    common.fields(visit);
  }
};

ToolInfo translate_tool_info();

/// Runs the program `translate`: translates line by line, or scores pairs with --score. Each input line gives one
/// output line (--n-best: several), in order and in constant memory. When the input pauses, the lines read so far are
/// translated and flushed. The first lines are translated soon, in small groups. Returns the exit code.
int run_translate(const TranslateOptions& options, std::istream& in, std::ostream& out, Log& log);

}  // namespace heed
