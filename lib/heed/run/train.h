#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"
#include "heed/optim/optimizer.h"
#include "heed/run/image_options.h"
#include "heed/run/model_options.h"
#include "heed/train/trainer_options.h"

namespace heed {

/// The options of the program `train`.
struct TrainOptions {
  std::vector<std::string> train_sets, valid_sets, vocabularies;
  std::string tsv, trees, guided_alignment, model, pretrained_model, tempdir, cluster;
  bool pretokenized = false;
  ModelOptions model_options;
  BatchOptions batch;
  ImageTrainingOptions images;
  OptimizerOptions optimizer;
  RunOptions run;
  bool check = false, dry_run = false;
  std::vector<std::string> average;
  std::string output;
  int threads = 0;
  std::string device = "auto";
  Utf8Options utf8;
  CommonOptions common{.log = {}, .verbose_letter = 0};
  std::vector<std::string> given;  ///< names of the options that the user has set (FieldList::given)

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Input and output");
    visit(train_sets, {.name = "train-sets",
                       .help = "parallel text to learn from; the source may be a list of images",
                       .value = "SRC TGT",
                       .file = FileUse::read,
                       .letter = 't'});
    visit(tsv, {.name = "tsv",
                .help = "parallel text in one file, source TAB target on each line; - is standard input",
                .value = "FILE",
                .file = FileUse::read});
    visit(trees, {.name = "trees",
                  .help = "constituency trees to learn to parse; their words are the sentences",
                  .value = "FILE",
                  .file = FileUse::read});
    visit(guided_alignment,
          {.name = "guided-alignment",
           .help = "word alignment of each pair (0-0 1-2) that the cross-attention is to learn, too; leaves: of trees",
           .value = "FILE|leaves",
           .file = FileUse::read});
    visit(valid_sets, {.name = "valid-sets",
                       .help = "parallel text to validate on; a single file is read as TSV, or as trees with --trees",
                       .value = "SRC TGT",
                       .file = FileUse::read});
    visit(vocabularies,
          {.name = "vocabularies",
           .help = "vocabularies of build-vocab: one for both sides, or one for the source and one for the target",
           .value = "VOCAB [VOCAB]",
           .file = FileUse::read,
           .letter = 'v'});
    visit(model, {.name = "model",
                  .help = "checkpoint to write; if it exists, training resumes from it",
                  .value = "MODEL.h5",
                  .file = FileUse::written,
                  .letter = 'm'});
    visit(pretrained_model,
          {.name = "pretrained-model",
           .help = "begin a new training with the parameters of this model, of the same sizes and vocabularies",
           .value = "MODEL.h5",
           .file = FileUse::read});
    visit(pretokenized, {.name = "pretokenized", .help = "the text is already tokens separated by spaces"});
    utf8.fields(visit);
    const Task before = model_options.task;
    model_options.fields(visit);
    if (model_options.task != before) set_defaults_of_task();
    batch.fields(visit);
    if (image_input(model_options.config)) images.fields(visit);
    optimizer.fields(visit);
    run.fields(visit);
    visit.section("Instead of training");
    visit(check, {.name = "check", .help = "examine text and model, time 20 updates, report, and write no file"});
    visit(dry_run, {.name = "dry-run", .help = "read everything, report what training would do, and stop"});
    visit(cluster, {.name = "cluster",
                    .help = "with --dry-run: predict the speed on several machines like this one",
                    .value = "nodes=N,bandwidth=25G,latency=5us"});
    visit(average, {.name = "average",
                    .help = "average the parameters of these models into --output",
                    .value = "A.h5 B.h5",
                    .file = FileUse::read});
    visit(output, {.name = "output",
                   .help = "the file that --average writes",
                   .value = "C.h5",
                   .file = FileUse::written,
                   .letter = 'o'});
    visit.section("Machine");
    visit(threads, {.name = "threads",
                    .help = "number of threads (0: one for each processor)",
                    .value = "N",
                    .letter = 'j',
                    .min = 0,
                    .max = 1024});
    visit(device, {.name = "device",
                   .help = "what computes the updates: auto (a GPU where there is one), cpu, or cuda:N",
                   .value = "auto|cpu|cuda:N"});
    visit(tempdir, {.name = "tempdir",
                    .help = "folder for the text of --shuffle-window (if not given: $TMPDIR, or /var/tmp)",
                    .value = "DIR"});
    common.fields(visit);
  }

  /// Returns whether the alignments of --guided-alignment are those of trees with their words.
  bool links_to_leaves() const { return guided_alignment == "leaves"; }
  /// Gives the options whose defaults depend on the task these defaults. Labels are validated by accuracy in place of
  /// BLEU. Images that sentences describe are not changed, because a flip would swap left and right.
  void set_defaults_of_task();
};

/// Runs the program `train`: trains options.model, or continues its training; or checks, or averages models. Records of
/// --log-format tsv and jsonl, --check and --dry-run go to `out`, all other messages to the log. Returns 0 when the
/// training is finished, and 75 when a signal has interrupted the training: the state is then saved, or no file has
/// changed if the signal came while the texts were read. Throws UsageError when options contradict each other, and
/// Error for bad data.
int run_train(const TrainOptions& options, std::istream& in, std::ostream& out, Log& log);

/// Returns the name, purpose, usage and examples of `train`, and the option names of other toolkits.
ToolInfo train_tool_info();

}  // namespace heed
