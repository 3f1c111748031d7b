#include "heed/run/inspect_attention.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/line_io.h"
#include "heed/checkpoint/checkpoint.h"
#include "heed/decode/force.h"
#include "heed/decode/parse.h"
#include "heed/model/model_config.h"
#include "heed/nn/position_table.h"
#include "heed/run/device_choice.h"
#include "heed/run/image_inspector.h"
#include "heed/run/number_ranges.h"
#include "heed/run/peer_options.h"
#include "heed/run/sentence_reader.h"
#include "heed/text/lexicon/alignment_links.h"
#include "heed/text/strings/vocabulary.h"
#include "heed/text/trees/linear_tree.h"

namespace heed {
namespace {

/// Copies the attention weights that the report needs for one sentence.
class TraceCopy : public Trace<float> {
 public:
  TraceCopy(const AttentionReport& report, std::vector<SentenceAttention::Head>& heads)
      : report_(report), heads_(heads) {}

  bool wants(AttentionKind kind, int) const override { return report_.wants(kind); }
  void attention(AttentionKind kind, int layer, int heads, PackedOffsets queries, PackedOffsets keys,
                 const Variable<float>& variable) override {
    const float* weights = variable.value.data();
    const auto size = static_cast<std::size_t>(queries.length(0)) * static_cast<std::size_t>(keys.length(0));
    for (int head = 1; head <= heads; ++head, weights += size)
      heads_.push_back({kind, layer + 1, head, std::vector<float>(weights, weights + size)});
  }

 private:
  const AttentionReport& report_;
  std::vector<SentenceAttention::Head>& heads_;
};

class InspectRun {
 public:
  InspectRun(const InspectAttentionOptions& options, const TerminalEnvironment& environment, int columns,
             std::istream& in, std::ostream& out, Log& log)
      : options_(options),
        terminal_(environment.terminal),
        out_(out),
        log_(log),
        lines_(options.lines.empty() ? std::nullopt : std::optional(NumberRanges::parse("lines", options.lines))),
        report_(options.report, options.output, out, environment, columns),
        gpu_(chosen_gpu(options.device, log)),
        checkpoint_(load_checkpoint(options.model)),
        parameters_(std::make_shared<PackedParameters<float>>(checkpoint_.parameters, gpu_)),
        decoder_(*checkpoint_.model, checkpoint_.parameters, Precision::float32, parameters_),
        forced_(*checkpoint_.model, checkpoint_.parameters, Precision::float32, parameters_),
        longest_(options.max_length),
        reader_(options, in) {
    if (!options.report.query.empty() && !image_input(checkpoint_.model->config()))
      throw UsageError("--query: is for models that read images (train --task vit); " + options.model + " reads text");
    report_.check_model(checkpoint_.model->attention_layers());
    if (options.beam_size && checkpoint_.model->is_parallel())
      throw UsageError("--beam-size: is for models that predict one position after the other; " + options.model +
                       " predicts all at once");
    search_.beam_size = options.beam_size.value_or(search_.beam_size);
    if (checkpoint_.target.steps().mode == TokenMode::trees) {
      trees_.emplace(checkpoint_.target.vocabulary());
      search_.max_output_length = std::numeric_limits<int>::max();
    }
    if (const auto most = longest_sequence(checkpoint_.model->config())) {
      longest_ = std::min(longest_, *most - 1);
      search_.max_output_length = std::min(search_.max_output_length, std::max(1, *most - 1));
    }
    if (image_input(checkpoint_.model->config()))
      images_.emplace(options, checkpoint_, decoder_, forced_, search_, report_);
  }

  int run() {
    Progress progress(log_, "inspecting", "lines", [&] { return reader_.share(); });
    SentenceAttention sentence;
    while (!(lines_ && lines_->all_before(reader_.line() + 1)) &&
           reader_.next(sentence.source_text, sentence.target_text)) {
      if (lines_ && !lines_->contains(reader_.line())) continue;
      sentence.line = reader_.line();
      if (images_)
        images_->inspect(sentence, reader_);
      else
        inspect(sentence);
      report_.add(sentence);
      if (!reader_.ready()) out_.flush();
      if (!terminal_) progress.to(reader_.line());
    }
    if (lines_ && reader_.line() < lines_->greatest_named())
      throw Error(Position{reader_.source_position().file}, "has " + count_of(reader_.line(), "line") +
                                                                ", but --lines asks for line " +
                                                                std::to_string(lines_->greatest_named()));
    report_.finish();
    reader_.report(log_);
    return 0;
  }

 private:
  /// Throws Error if a line of the input, whose place is `where`, has more pieces than --max-length or the model
  /// allows.
  void check_length(const PieceSentence& sentence, const Position& where) const {
    const auto longest = static_cast<std::size_t>(longest_);
    if (sentence.pieces.size() <= longest) return;
    const std::string what =
        "has " + std::to_string(sentence.pieces.size()) + " pieces, more than " + std::to_string(longest);
    throw Error(where, longest_ < options_.max_length
                           ? what + " (this model has positions for no more; --lines leaves lines out)"
                           : what + " (--max-length N allows more, but memory grows with its square)");
  }

  /// Translates a sentence whose line is `line`, and sets `text` to the translation.
  PieceSentence translate(const PieceSentence& source, const std::string& line, std::string& text) {
    if (source.ids.empty()) return {};
    std::vector<std::int32_t> ids = source.ids;
    ids.push_back(kEndId);
    PackedIds batch;
    batch.append(ids);
    if (!trees_) {
      PieceSentence out = from_ids(checkpoint_.target, decoder_.translate(batch, search_).front().front().ids);
      text = checkpoint_.target.decode(out.ids);
      return out;
    }
    const std::vector<std::string_view> words = words_of_line(line);
    const int count = static_cast<int>(words.size());
    PieceSentence out =
        from_ids(checkpoint_.target, parse(decoder_, batch, {&count, 1}, *trees_, search_).front().front().ids);
    text = tree_of_linear(checkpoint_.target.join(out.ids), words);
    return out;
  }

  /// Fills in the tokens and attention weights of a sentence whose source text is set. When the user gives no targets,
  /// translates the source text and sets the target text.
  void inspect(SentenceAttention& sentence) {
    sentence.heads.clear();
    if (!reader_.has_target()) sentence.target_text.clear();
    const PieceSentence source = encode(checkpoint_.source, sentence.source_text, reader_.source_position());
    check_length(source, reader_.source_position());
    PieceSentence target;
    if (reader_.has_target()) {
      target = encode(checkpoint_.target, sentence.target_text, reader_.target_position());
      check_length(target, reader_.target_position());
      if (trees_ && !source.ids.empty() && !target.ids.empty())
        check_tree_words(sentence.source_text, sentence.target_text, reader_.target_position());
    } else {
      target = translate(source, sentence.source_text, sentence.target_text);
    }
    sentence.source = tokens_of(checkpoint_.source, source.pieces, false, true);
    sentence.produced = tokens_of(checkpoint_.target, target.pieces, false, true);
    // A decoder that predicts all positions at once reads its own tokens.
    sentence.fed = checkpoint_.model->is_parallel() ? sentence.produced
                                                    : tokens_of(checkpoint_.target, target.pieces, true, false);
    if (!options_.report.gold.empty()) read_gold(sentence);
    if (source.ids.empty() && target.ids.empty()) return;
    Batch pair;
    pair.add(source.ids, target.ids);
    TraceCopy trace(report_, sentence.heads);
    forced_.attention(pair, trace);
  }

  /// Reads the links of --gold between the words of a sentence.
  void read_gold(SentenceAttention& sentence) const {
    sentence.gold = {};
    const auto count = [](const AttentionTokens& tokens) { return std::ssize(tokens.words.words) - 1; };  // no </s>
    for (const AlignmentLink& link : read_links(reader_.links(), count(sentence.source), count(sentence.produced),
                                                "words", reader_.links_position(), LinkMarks::possible)) {
      Alignment& links = link.possible ? sentence.gold.possible : sentence.gold.sure;
      links.emplace_back(static_cast<int>(link.source), static_cast<int>(link.target));
    }
    for (Alignment* const links : {&sentence.gold.sure, &sentence.gold.possible}) {
      std::ranges::sort(*links);
      links->erase(std::ranges::unique(*links).begin(), links->end());
    }
  }

  const InspectAttentionOptions& options_;
  bool terminal_;
  std::ostream& out_;
  Log& log_;
  std::optional<NumberRanges> lines_;
  AttentionReport report_;
  std::optional<int> gpu_;  // the number of the GPU that computes
  Checkpoint checkpoint_;
  std::shared_ptr<PackedParameters<float>> parameters_;
  Decoder decoder_;
  ForcedDecoder forced_;
  // What the pieces of trees are, if the model writes trees.
  std::optional<TreePieces> trees_;
  // The settings of the search: the user's beam size, and the length of a translation that the model allows.
  SearchOptions search_;
  // The greatest number of pieces in a source, or in a given target.
  int longest_;
  SentenceReader reader_;
  // If the model reads images.
  std::optional<ImageInspector> images_;
};

/// Returns the tables of --kind positions. Throws UsageError if the model has none, or if the user gives --positions
/// and all tables of the model have a fixed size.
std::vector<PositionTable> read_positions(const InspectAttentionOptions& options) {
  constexpr int kPositions = 60;
  Checkpoint checkpoint = load_checkpoint(options.model);
  Arena arena;
  CpuContext device{arena, Precision::float32};
  Graph<float> graph(device, checkpoint.parameters);
  const auto tables = [&](int positions) { return checkpoint.model->position_tables(graph, positions); };
  const auto size = [](const std::vector<PositionTable>& all) {
    std::size_t numbers = 0;
    for (const PositionTable& each : all) numbers += each.values.size();
    return numbers;
  };
  std::vector<PositionTable> found = tables(options.report.positions.value_or(kPositions));
  if (found.empty() && std::holds_alternative<SwinConfig>(checkpoint.model->config()))
    throw UsageError("--kind positions: " + options.model +
                     " encodes positions by biases within windows, which this tool does not show");
  if (found.empty())
    throw UsageError(
        "--kind positions: this model does not encode positions (train --transformer-positions makes models that do)");
  if (options.report.positions && size(tables(1)) == size(tables(2)))
    throw UsageError("--positions: has no use with " + options.model + ", whose tables have a fixed size");
  return found;
}

/// Writes how the model encodes positions.
void inspect_positions(const InspectAttentionOptions& options, const TerminalEnvironment& environment, int columns,
                       std::ostream& out) {
  AttentionReport report(options.report, options.output, out, environment, columns);
  report.add_positions(read_positions(options));
  report.finish();
}

void check_options(const InspectAttentionOptions& options) {
  if (options.model.empty()) throw UsageError("needs a model: -m MODEL.h5 (train makes one)");
  const AttentionReportOptions& report = options.report;
  for (const auto& [name, value] : std::initializer_list<std::pair<std::string_view, const std::string&>>{
           {"layer", report.layer}, {"head", report.head}, {"lines", options.lines}, {"query", report.query}})
    if (value.empty() && is_given(options.given, name))
      throw UsageError("--" + std::string(name) + ": the value is empty (give one, or leave the option out)");
  if (options.report.kind == AttentionChoice::positions) {
    const auto refuse = [](bool given, const char* option) {
      if (given) throw UsageError(std::string(option) + ": has no use with --kind positions, which reads no sentences");
    };
    refuse(options.input != "-", "--input");
    refuse(!options.target.empty(), "--target");
    refuse(options.tsv, "--tsv");
    refuse(!options.lines.empty(), "--lines");
    refuse(options.beam_size.has_value(), "--beam-size");
    const InspectAttentionOptions defaults;
    refuse(options.utf8.on_invalid_utf8 != defaults.utf8.on_invalid_utf8, "--on-invalid-utf8");
    refuse(options.max_length != defaults.max_length, "--max-length");
    refuse(options.device != defaults.device, "--device");
  }
  if (!options.report.gold.empty() && options.target.empty() && !options.tsv)
    throw UsageError("--gold: the alignments are those of given targets (-t TARGET or --tsv)");
  if (options.tsv && !options.target.empty())
    throw UsageError("--tsv and --target exclude each other: the targets are in one place");
  check_standard_input({tool_input(options.input), {"--target", options.target}, {"--gold", options.report.gold}});
  if (options.beam_size && (options.tsv || !options.target.empty()))
    throw UsageError("--beam-size is for translating, but the targets are given (leave one of them out)");
}

}  // namespace

int run_inspect_attention(const InspectAttentionOptions& options, const TerminalEnvironment& environment, int columns,
                          std::istream& in, std::ostream& out, Log& log) {
  check_options(options);
  // A wrong value of the environment variable HEED_ISA is reported by this call, before the model is read.
  static_cast<void>(instruction_set());
  if (options.report.kind == AttentionChoice::positions) {
    inspect_positions(options, environment, columns, out);
    return 0;
  }
  return InspectRun(options, environment, columns, in, out, log).run();
}

ToolInfo inspect_attention_tool_info() {
  return {.name = "inspect-attention",
          .purpose = "show what every attention head of a model looks at",
          .usage = {"inspect-attention -m MODEL.h5 [-t TARGET | --tsv] [options] < source",
                    "inspect-attention -m MODEL.h5 --kind positions [options]"},
          .examples = {"echo \"i'm home .\" | inspect-attention -m model.h5",
                       "inspect-attention -m model.h5 -t test.fr --lines 3 --head all -o heads.svg < test.en",
                       "inspect-attention -m model.h5 -t test.fr -f pharaoh < test.en > test.align",
                       "inspect-attention -m model.h5 -t test.fr --stats --gold test.align < test.en",
                       "inspect-attention -m model.h5 -t test.fr --layer all --head all -o heads.html < test.en",
                       "inspect-attention -m model.h5 --kind positions -o positions.svg",
                       "inspect-attention -m vit.h5 -i test.images --layer all --head all -o heads.png",
                       "inspect-attention -m vit.h5 -i test.images --rollout"},
          .peers = inspect_attention_peer_options()};
}

}  // namespace heed
