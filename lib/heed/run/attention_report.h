#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/terminal.h"
#include "heed/inspect/attention_map.h"
#include "heed/inspect/attention_picture.h"
#include "heed/inspect/head_statistics.h"
#include "heed/model/model.h"
#include "heed/run/attention_file.h"
#include "heed/run/attention_options.h"
#include "heed/run/attention_tokens.h"

namespace heed {

/// The attention weights that a model computes for one sentence pair, with the texts and tokens of the pair.
struct SentenceAttention {
  std::int64_t line = 0;
  /// The source and the target sentence as raw text.
  std::string source_text = {}, target_text = {};
  /// The tokens that the encoder reads: pieces of the source and `</s>`.
  AttentionTokens source = {};
  /// The tokens that the decoder reads: `<s>` and pieces of the target.
  AttentionTokens fed = {};
  /// The tokens that the decoder predicts: pieces of the target and `</s>`.
  AttentionTokens produced = {};
  struct Head {
    AttentionKind kind = AttentionKind::cross;
    int layer = 1, head = 1;
    /// The attention weights of this head: [queries, keys] in row-major order.
    std::vector<float> weights;
  };
  /// The word alignment that people have made, with --gold.
  GoldAlignment gold = {};
  /// The attention weights of each head; empty when source and target are empty lines.
  std::vector<Head> heads = {};
};

/// Writes the attention of sentences in the format that the user chose; with --stats or --gold, a summary of all.
class AttentionReport {
 public:
  /// `output` is the name of the output file; its ending may choose the format. `environment` describes the terminal,
  /// if any, that `out` is connected to. Throws UsageError when options contradict each other.
  AttentionReport(const AttentionReportOptions& options, const std::string& output, std::ostream& out,
                  const TerminalEnvironment& environment, int terminal_columns);

  /// Checks that the model has the kind of attention, the layers and the heads that the options name. `attention` is
  /// what Model::attention_layers() returned. Throws UsageError otherwise.
  void check_model(const std::vector<AttentionLayers>& attention);
  /// Returns whether the report needs the weights of this kind of attention.
  bool wants(AttentionKind kind) const;
  AttentionFormat format() const { return format_; }

  /// Writes the tables by which the model encodes positions, of which --layer chooses some. Throws UsageError where
  /// there are no such tables.
  void add_positions(std::vector<PositionTable> tables);
  /// Writes the attention maps of a sentence. For SVG, PNG and HTML, keeps the maps instead, for the picture or page of
  /// all sentences that finish() writes, and for HDF5 adds them to the file.
  void add(const SentenceAttention& sentence);
  /// Writes the picture, page, file or summary of all sentences. For TSV, writes the header line if add() was never
  /// called; for other formats, writes nothing.
  void finish();

 private:
  void summarize(const SentenceAttention& sentence);
  std::vector<AttentionMap> select(const SentenceAttention& sentence) const;
  std::vector<int> layers(AttentionKind kind) const;
  int depth(AttentionKind kind) const;
  std::string links(const std::vector<AttentionMap>& maps) const;

  AttentionReportOptions options_;
  AttentionFormat format_;
  bool words_;
  std::optional<float> threshold_;
  std::ostream& out_;
  Shading shading_;
  int width_;
  std::vector<AttentionLayers> attention_;  // of the model
  bool begun_ = false;
  std::vector<AttentionSection> sections_;
  HeadStatistics statistics_;
  std::optional<AttentionFile> file_;
};

}  // namespace heed
