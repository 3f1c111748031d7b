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
#include "heed/inspect/image_attention.h"
#include "heed/model/model.h"
#include "heed/run/attention_file.h"
#include "heed/run/attention_options.h"
#include "heed/run/attention_selection.h"
#include "heed/run/sentence_attention.h"

namespace heed {

/// Writes the attention of sentences in the format that the user chose; with --stats or --gold, a summary of all.
class AttentionReport {
 public:
  /// `output` is the name of the output file; its ending may choose the format. `environment` describes the terminal,
  /// if any, that `out` is connected to. Throws UsageError when options contradict each other.
  AttentionReport(const AttentionReportOptions& options, const std::string& output, std::ostream& out,
                  const TerminalEnvironment& environment, int terminal_columns);

  /// Checks that the model has the kind of attention, the layers and the heads that the options name. `attention` is
  /// what Model::attention_layers() returned. Throws UsageError otherwise.
  void check_model(const std::vector<AttentionLayers>& attention) { selection_.check_model(attention); }
  /// Returns whether the report needs the weights of this kind of attention.
  bool wants(AttentionKind kind) const { return selection_.wants(kind); }
  /// Returns whether the report needs all rows of the encoder's attention to an image.
  bool wants_rollout() const { return options_.rollout; }
  AttentionFormat format() const { return format_; }
  /// Returns whether the format is a picture, on a terminal or in a file.
  bool draws() const;

  /// Writes the tables by which the model encodes positions, at least one, of which --layer chooses some. Throws
  /// UsageError if --layer names a layer without such a table.
  void add_positions(std::vector<PositionTable> tables);
  /// Writes the attention maps of a sentence. For SVG, PNG and HTML, keeps the maps instead, for the picture or page of
  /// all sentences that finish() writes, and for HDF5 adds them to the file.
  void add(const SentenceAttention& sentence);
  /// Writes the picture, page, file or summary of all sentences. For TSV, writes the header line if add() was never
  /// called; for other formats, writes nothing.
  void finish();

 private:
  void summarize(const SentenceAttention& sentence);
  void add_image(const SentenceAttention& sentence);
  bool ascii() const;
  std::string shown_heading(const std::string& text) const;
  std::string links(const std::vector<AttentionMap>& maps) const;

  AttentionReportOptions options_;
  AttentionFormat format_;
  AttentionSelection selection_;
  std::optional<float> threshold_;
  std::ostream& out_;
  Shading shading_;
  int width_;
  bool begun_ = false;
  std::vector<AttentionSection> sections_;
  std::vector<ImageSection> images_;
  HeadStatistics statistics_;
  std::optional<AttentionFile> file_;
};

}  // namespace heed
