#include "heed/run/tokenize.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <memory>
#include <set>
#include <string_view>

#include "heed/base/streams.h"
#include "heed/base/utf8.h"
#include "heed/metrics/score_report.h"
#include "heed/run/extra_options.h"
#include "heed/run/line_pipeline.h"
#include "heed/run/peer_options.h"
#include "heed/text/bpe/bpe.h"
#include "heed/text/strings/scan.h"
#include "heed/text/token_offsets.h"

namespace heed {

namespace {

bool tells_offsets(TokenFormat format) {
  return format == TokenFormat::tsv || format == TokenFormat::jsonl;
}

/// Throws UsageError for the first option that says what the file of --model says, too.
void check_against_model(const std::vector<std::string>& given) {
  FirstStageOptions steps;
  const FieldList fixed = FieldList::of(steps);
  const std::set<std::string_view> of_subwords{"codes", "merges", "separator", "vocabulary", "glossaries", "bytes"};
  for (const std::string& name : given)
    if ((fixed.find(name) && name != "language") || of_subwords.contains(name))
      throw UsageError("--" + name + ": --model says this already (leave it out, or leave out --model)");
}

void check_options(const TokenizeOptions& options) {
  if (!options.model.empty()) check_against_model(options.given);
  const auto given = [&](std::string_view name) { return is_given(options.given, name); };
  const auto needs = [&](std::string_view name, bool there, const std::string& what) {
    if (given(name) && !there) throw UsageError("--" + std::string(name) + ": needs " + what);
  };
  needs("merges", given("codes"), "--codes");
  needs("vocabulary", given("codes"), "--codes");
  needs("vocabulary-threshold", given("vocabulary"), "--vocabulary");
  needs("glossaries", given("codes"), "--codes");
  needs("bytes", given("codes"), "--codes");
  needs("dropout", given("codes") || given("model"), "--codes, or a --model with merges");
  needs("sample-alpha", given("model"), "--model, a unigram model");
  needs("n-best", given("model"), "--model, a unigram model");
  needs("extra-options", given("model"), "--model, a SentencePiece model");
  needs("normalize-only", given("model"), "--model, a SentencePiece model");
  needs("seed", given("dropout") || given("sample-alpha"), "--dropout or --sample-alpha");
  needs("separator", given("codes") || options.detokenize, "--codes or --detokenize");
  if (options.separator.empty())
    throw UsageError("--separator '': cannot be empty, because a piece without a mark looks like a word");
  if (options.separator.find_first_of(" \n") != std::string::npos)
    throw UsageError("--separator '" + options.separator + "': cannot hold a space or a line end");
  if (options.uppercase_first && !options.detokenize) throw UsageError("--uppercase-first: needs --detokenize");
  if (options.output_format == TokenFormat::id && options.model.empty())
    throw UsageError("--output-format id: needs --model, which numbers the pieces");
  const bool with_offsets = tells_offsets(options.output_format);
  for (const auto& [name, there] : {std::pair{"--detokenize", options.detokenize}, {"--check", options.check}})
    if (with_offsets && there)
      throw UsageError(std::string(name) + ": has no use with --output-format " +
                       std::string(enum_name(options.output_format)));
  for (const std::string_view name : {"detokenize", "check", "stats", "sample-alpha"})
    if (options.n_best > 0 && given(name)) throw UsageError("--n-best: has no use with --" + std::string(name));
  if (with_offsets && options.utf8.on_invalid_utf8 == InvalidUtf8::keep)
    throw UsageError("--on-invalid-utf8 keep: --output-format " + std::string(enum_name(options.output_format)) +
                     " is UTF-8 and shows invalid bytes as U+FFFD (use replace or fail)");
  if (options.n_best > 0 && with_offsets) throw UsageError("--n-best: writes pieces or ids, not tsv or jsonl");
  if (given("extra-options") && with_offsets)
    throw UsageError("--extra-options: changes pieces or ids, not tsv or jsonl");
  for (const std::string_view name :
       {"detokenize", "check", "stats", "output-format", "n-best", "sample-alpha", "dropout", "extra-options"})
    if (options.normalize_only && given(name))
      throw UsageError("--normalize-only: has no use with --" + std::string(name));
  if (options.sample_alpha && options.detokenize) throw UsageError("--sample-alpha: has no use with --detokenize");
  if (options.dropout > 0 && options.detokenize) throw UsageError("--dropout: has no use with --detokenize");
  if (options.check && options.detokenize) throw UsageError("--check: goes both ways itself; leave --detokenize out");
  for (const std::string_view name : {"merges", "vocabulary-threshold", "vocabulary", "glossaries", "stats"})
    if (options.detokenize && given(name))
      throw UsageError("--" + std::string(name) + ": has no use with --detokenize");
  if (options.detruecase && !options.detokenize) throw UsageError("--detruecase: needs --detokenize");
  if (options.first_words && options.train_truecaser.empty())
    throw UsageError("--possibly-use-first-token: needs --train-truecaser");
  if (!options.train_truecaser.empty())
    for (const std::string_view name :
         {"model", "truecase", "codes", "output", "output-format", "detokenize", "check", "stats"})
      if (given(name)) throw UsageError("--train-truecaser: has no use with --" + std::string(name));
  check_standard_input({tool_input(options.input),
                        {"--model", options.model},
                        {"--codes", options.codes},
                        {"--vocabulary", options.vocabulary},
                        {"--truecase", options.first_stage.truecase_file},
                        {"--protected", options.first_stage.protected_file}});
}

/// Throws UsageError for options that do not fit the text steps `steps` or the subwords `subwords`, which the options
/// or the files that they name have chosen.
void check_against_steps(const TokenizeOptions& options, const TextSteps& steps, const Subwords& subwords) {
  for (const auto& [name, given] :
       {std::pair{"--uppercase-first", options.uppercase_first}, {"--detruecase", options.detruecase}})
    if (given && steps.mode == TokenMode::trees)
      throw UsageError(std::string(name) + ": would change the labels of --mode trees");
  if (tells_offsets(options.output_format) && subwords.bpe() && subwords.bpe()->merges().bytes)
    throw UsageError("--output-format " + std::string(enum_name(options.output_format)) +
                     ": is UTF-8, but merges of bytes give pieces that are parts of a character (use --output-format "
                     "piece)");
}

/// Collects the pieces of one line with their offsets, words and ids, and writes them as columns of --output-format tsv
/// or as fields of jsonl.
class PieceFields {
 public:
  explicit PieceFields(bool json) : json_(json) {}

  void add(std::string_view piece, int word, ByteSpan from, std::int32_t id) {
    const char* const gap = pieces_.empty() ? "" : json_ ? ", " : " ";
    pieces_.append(gap).append(json_ ? json_string(piece) : tsv_field(piece));
    const std::string begin = std::to_string(from.begin), end = std::to_string(from.end);
    offsets_.append(gap).append(json_ ? "[" + begin + ", " + end + "]" : begin + ":" + end);
    words_.append(gap).append(std::to_string(word));
    ids_.append(gap).append(std::to_string(id));
  }

  void write(bool with_ids, std::string& out) const {
    if (json_) {
      out.append("{\"pieces\": [").append(pieces_).append("], \"offsets\": [").append(offsets_);
      out.append("], \"words\": [").append(words_);
      if (with_ids) out.append("], \"ids\": [").append(ids_);
      out.append("]}");
    } else {
      out.append(pieces_).append(1, '\t').append(offsets_).append(1, '\t').append(words_);
      if (with_ids) out.append(1, '\t').append(ids_);
    }
  }

 private:
  bool json_;
  std::string pieces_, offsets_, words_, ids_;
};

/// Converts lines to tokens and back: with --model by the steps that the model stores, otherwise by the options.
class LineConverter {
 public:
  explicit LineConverter(const TokenizeOptions& options)
      : ids_(options.output_format == TokenFormat::id),
        undo_{.uppercase_first = options.uppercase_first, .detruecase = options.detruecase} {
    if (!options.model.empty()) {
      const std::string language =
          is_given(options.given, "language") ? options.first_stage.steps.language : std::string();
      model_ = std::make_unique<const TextModel>(
          load_text_model(options.model, language, options.detokenize ? Side::target : Side::source));
      if (model_->steps().mode == TokenMode::images)
        throw UsageError("--model: the source side of " + options.model +
                         " reads images, which have no tokens (-m VOCABULARY, with the vocabulary of the target side, "
                         "splits text)");
      subwords_ = model_->subwords();
      if (options.dropout > 0 && subwords_.type() != SubwordType::bpe)
        throw UsageError("--dropout: the type of the vocabulary, " + std::string(subwords_.type_name()) +
                         ", has no merges that can be left out");
      if ((options.n_best > 0 || options.sample_alpha) && !subwords_.is_unigram())
        throw UsageError(std::string(options.n_best > 0 ? "--n-best" : "--sample-alpha") + ": " + options.model +
                         " is no unigram model (build-vocab --type unigram makes one)");
      if (subwords_.type() == SubwordType::sentencepiece) {
        const SentencePiece& pieces = *subwords_.sentencepiece();
        extra_ = ExtraOptions(options.extra_options, pieces, options.model);
        if (options.normalize_only) make_normalizer(pieces.model(), options.model);
      } else {
        for (const std::string_view name : {"extra-options", "normalize-only"})
          if (is_given(options.given, name))
            throw UsageError("--" + std::string(name) + ": " + options.model + " holds no SentencePiece model");
      }
      return;
    }
    const TextSteps steps = options.first_stage.resolved();
    if (split_languages(steps.language).size() > 1)
      throw UsageError("--language '" + steps.language + "': must be one code");
    pipeline_ = std::make_unique<const TextPipeline>(steps);
    BpeOptions how{.separator = options.separator};
    if (!options.codes.empty()) {
      BpeMerges merges = BpeMerges::read(options.codes, options.merges.value_or(-1), options.bytes);
      if (!options.vocabulary.empty())
        how.allowed = read_counted_vocabulary(options.vocabulary, options.vocabulary_threshold.value_or(INT64_MIN));
      how.glossaries = Glossaries(options.glossaries);
      subwords_ = Subwords(std::make_shared<const BpeEncoder>(std::move(merges), std::move(how)));
    } else if (is_given(options.given, "separator")) {
      subwords_ = Subwords(std::make_shared<const BpeEncoder>(BpeMerges{}, std::move(how)));
    }
  }

  const TextModel* model() const { return model_.get(); }
  const Subwords& subwords() const { return subwords_; }
  const TextSteps& steps() const { return model_ ? model_->steps() : pipeline_->steps(); }

  /// Sets `out` to the tokens of `line`, before they are split into subword pieces.
  void tokens_of(const std::string& line, std::string& out) const {
    if (model_)
      model_->tokens_of(line, out);
    else
      pipeline_->tokenize(line, out);
  }

  /// Splits `tokens` into subword pieces and appends the pieces or their ids to `out`. Keeps spaces around the line, as
  /// subword-nmt's apply-bpe does.
  void cut(const std::string& tokens, std::string& out, SubwordSampler* sampler) const {
    if (!ids_ && subwords_.type() == SubwordType::words) {
      out += tokens;
      return;
    }
    if (!extra_.empty()) {
      std::vector<PieceWithId> list;
      subwords_.sentencepiece()->encode(
          tokens,
          [&](std::string_view piece, std::int32_t id, int) {
            list.push_back({std::string(piece), id});
          },
          sampler);
      return write_changed(list, out);
    }
    if (ids_) {
      std::string_view space;
      for (const std::int32_t id : model_->encode_tokens(tokens, sampler)) {
        char digits[16];
        out.append(space).append(digits, std::to_chars(digits, std::end(digits), id).ptr);
        space = " ";
      }
      return;
    }
    // SentencePiece pieces contain the spaces of the text. Other pieces do not, so that spaces around the line are
    // copied.
    const bool as_text = subwords_.sentencepiece() != nullptr;
    const std::size_t first = as_text ? 0 : std::min(tokens.find_first_not_of(' '), tokens.size());
    out.append(first, ' ');
    subwords_.append_pieces(tokens, out, sampler);
    if (!as_text && first < tokens.size()) out.append(tokens.size() - 1 - tokens.find_last_not_of(' '), ' ');
  }

  /// Appends the `count` best segmentations into pieces, one per line: "N ||| pieces ||| score", where N is the number
  /// of the input line, counted from 0.
  void n_best(const std::string& tokens, std::int64_t count, std::int64_t line_number, std::string& out) const {
    const SentencePiece& pieces = *subwords_.sentencepiece();
    const std::string normal = pieces.normalize(tokens);
    for (const PiecePath& path : pieces.unigram()->n_best(normal, static_cast<int>(count))) {
      out += std::to_string(line_number - 1) + " ||| ";
      std::vector<PieceWithId> list;
      pieces.pieces(normal, path.spans, [&](std::string_view piece, std::int32_t id, int) {
        list.push_back({std::string(piece), id});
      });
      write_changed(list, out);
      char score[32];
      std::snprintf(score, sizeof score, "%.4f", static_cast<double>(path.score));
      out.append(" ||| ").append(score).append(1, '\n');
    }
  }

  /// Appends the pieces with their byte offsets in the raw line, as TSV or JSON.
  void cut_with_offsets(const std::string& raw, const std::string& tokens, TokenFormat format, SubwordSampler* sampler,
                        std::string& out) const {
    const TokenOffsets offsets(raw, tokens, steps().escape, places_in_tree(steps(), raw));
    PieceFields fields(format == TokenFormat::jsonl);
    const auto add = [&](std::string_view piece, std::int32_t id, int word, ByteSpan span) {
      fields.add(piece, word, offsets.source(span), id);
    };
    if (subwords_.sentencepiece()) {
      subwords_.sentencepiece()->encode_spans(tokens, add, sampler);
    } else {
      subwords_.split_spans(
          tokens,
          [&](std::string_view piece, int word, ByteSpan span) {
            add(piece, model_ ? model_->vocabulary().id(piece) : -1, word, span);
          },
          sampler);
    }
    fields.write(model_ != nullptr, out);
  }

  /// Appends `line` as the normalisation rules of a SentencePiece model change it, and without any other step, like
  /// SentencePiece's program spm_normalize.
  void normalize(std::string_view line, std::string& out) const {
    thread_local std::string normalized;
    normalizer_->normalize(line, normalized);
    out += normalized;
  }

  /// Converts `line`, a line of pieces or ids that cut() has written, back to raw text.
  std::string back(const std::string& line, const Position& where) const {
    return detokenize(ids_ ? model_->join(parse_ids(line, where)) : join_pieces(line));
  }

 private:
  /// Creates the normaliser that SentencePiece's program spm_normalize would use with `model`. The normaliser adds no
  /// space in front, does not replace spaces by U+2581, and reduces several spaces to one.
  void make_normalizer(const SentencePieceModel& model, const std::string& where) {
    SentencePieceRules rules = model.normalizer;
    rules.add_dummy_prefix = rules.escape_whitespaces = false;
    rules.remove_extra_whitespaces = true;
    normalizer_.emplace(rules, false, PieceTrie(), where);
  }

  /// Applies the --extra-options, such as reverse, to the list of pieces, and appends the resulting pieces or ids to
  /// `out`.
  void write_changed(std::vector<PieceWithId>& list, std::string& out) const {
    extra_.apply(list);
    std::string_view space;
    for (const PieceWithId& entry : list) {
      out.append(space).append(ids_ ? std::to_string(entry.id) : entry.piece);
      space = " ";
    }
  }

  std::string detokenize(const std::string& tokens) const {
    return model_ ? model_->detokenize(tokens, undo_) : pipeline_->detokenize(tokens, undo_);
  }

  std::string join_pieces(const std::string& line) const {
    if (subwords_.type() == SubwordType::words) return line;
    std::vector<std::string_view> pieces;
    const std::string_view text = line;
    for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      pieces.push_back(text.substr(at, end - at));
      at = end;
    }
    if (extra_.empty()) return subwords_.join(pieces);
    std::vector<PieceWithId> list;
    for (const std::string_view piece : pieces) list.push_back({std::string(piece), kUnknownId});
    extra_.apply(list);
    pieces.clear();
    for (const PieceWithId& entry : list) pieces.emplace_back(entry.piece);
    return subwords_.join(pieces);
  }

  std::vector<std::int32_t> parse_ids(const std::string& line, const Position& where) const {
    std::vector<std::int32_t> ids;
    for (std::size_t at = 0; (at = line.find_first_not_of(' ', at)) != std::string::npos;) {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      const Position here{where.file, where.line, static_cast<std::int64_t>(at) + 1};
      std::int32_t id = -1;
      const auto [stop, error] = std::from_chars(line.data() + at, line.data() + end, id);
      if (error != std::errc() || stop != line.data() + end)
        throw Error(here, "'" + line.substr(at, end - at) + "' is no id (--output-format id reads numbers)");
      if (id < 0 || id >= model_->size())
        throw Error(here, "id " + std::to_string(id) + " is not in the vocabulary of " +
                              std::to_string(model_->size()) + " pieces");
      ids.push_back(id);
      at = end;
    }
    if (extra_.empty()) return ids;
    std::vector<PieceWithId> list;
    for (const std::int32_t id : ids) list.push_back({std::string(model_->vocabulary().piece(id)), id});
    extra_.apply(list);
    ids.clear();
    for (const PieceWithId& entry : list) ids.push_back(entry.id);
    return ids;
  }

  bool ids_;
  DetokenizeOptions undo_;
  std::unique_ptr<const TextModel> model_;
  std::unique_ptr<const TextPipeline> pipeline_;
  Subwords subwords_;
  ExtraOptions extra_;
  // The normaliser of --normalize-only; not set without this option.
  std::optional<SentencePieceNormalizer> normalizer_;
};

/// Counters of --stats and --check, shared by all threads.
struct Counts {
  std::atomic<std::int64_t> tokens = 0, pieces = 0, unknown = 0, longest = 0, failed = 0;

  void add(const LineConverter& converter, const std::string& line_of_tokens, SubwordSampler* sampler) {
    std::int64_t words = 0, parts = 0, strange = 0;
    converter.subwords().split(
        line_of_tokens,
        [&](std::string_view piece, int word) {
          words = word + 1;
          ++parts;
          if (converter.model()) strange += !converter.model()->vocabulary().contains(piece);
        },
        sampler);
    tokens += words;
    pieces += parts;
    unknown += strange;
    for (std::int64_t seen = longest; seen < parts && !longest.compare_exchange_weak(seen, parts);) continue;
  }

  std::string text(std::int64_t lines, bool with_unknown) const {
    char ratios[64];
    const auto ratio = [](std::int64_t part, std::int64_t whole) {
      return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
    };
    std::snprintf(ratios, sizeof ratios, " (%.3f a token, %.1f a line)", ratio(pieces, tokens), ratio(pieces, lines));
    std::string out = format_count(lines) + " lines, " + format_count(tokens) + " tokens, " + format_count(pieces) +
                      " pieces" + ratios + ", longest line " + format_count(longest) + " pieces";
    if (!with_unknown) return out;
    std::snprintf(ratios, sizeof ratios, " (%.3f %%)", 100 * ratio(unknown, pieces));
    return out + ", unknown " + format_count(unknown) + ratios;
  }
};

/// Returns the function that converts one input line to output, as the options ask.
std::function<void(const std::string&, std::int64_t, std::string&)> line_work(const TokenizeOptions& options,
                                                                              const LineConverter& converter,
                                                                              const std::string& name, Counts& counts,
                                                                              Log& log) {
  if (options.detokenize)
    return [&converter, &name](const std::string& line, std::int64_t number, std::string& out) {
      out.append(converter.back(line, {name, number})).append(1, '\n');
    };
  if (options.normalize_only)
    return [&converter](const std::string& line, std::int64_t, std::string& out) {
      converter.normalize(line, out);
      out += '\n';
    };
  return [&](const std::string& line, std::int64_t number, std::string& out) {
    const bool with_offsets = tells_offsets(options.output_format);
    thread_local std::string tokens;
    converter.tokens_of(with_offsets ? replace_invalid_utf8(line) : line, tokens);
    const auto with_sampler = [&](auto&& use) {
      if (options.dropout == 0 && !options.sample_alpha) return use(nullptr);
      SubwordSampler sampler{.dropout = options.dropout,
                             .alpha = options.sample_alpha.value_or(0),
                             .stream = RandomStream(static_cast<std::uint64_t>(options.seed), RandomUse::subwords,
                                                    static_cast<std::uint64_t>(number))};
      use(&sampler);
    };
    if (options.n_best > 0) return converter.n_best(tokens, options.n_best, number, out);
    if (options.stats) with_sampler([&](SubwordSampler* sampler) { counts.add(converter, tokens, sampler); });
    if (with_offsets) {
      with_sampler([&](SubwordSampler* sampler) {
        converter.cut_with_offsets(line, tokens, options.output_format, sampler, out);
      });
      out += '\n';
      return;
    }
    if (!options.check) {
      with_sampler([&](SubwordSampler* sampler) { converter.cut(tokens, out, sampler); });
      out += '\n';
      return;
    }
    std::string cut;
    with_sampler([&](SubwordSampler* sampler) { converter.cut(tokens, cut, sampler); });
    const std::string back = converter.back(cut, {name, number});
    if (back == line) return;
    ++counts.failed;
    out.append(std::to_string(number)).append(1, '\n');
    log.detail(name + ":" + std::to_string(number) + ": comes back as: " + back);
  };
}

/// Learns a truecase model from the tokens and writes the model to the file that --train-truecaser names.
void train_truecaser(const TokenizeOptions& options, const LineConverter& converter, LineReader& reader, Log& log) {
  TruecaseLearner learner(options.first_words);
  Progress progress(log, "learning", "lines", [&] { return reader.share(); });
  run_line_pipeline(reader, options.threads,
                    {.work =
                         [&](const std::string& line, std::int64_t, std::string& out) {
                           thread_local std::string tokens;
                           converter.tokens_of(line, tokens);
                           out.append(tokens).append(1, '\n');
                         },
                     .take =
                         [&](const std::string& text, std::int64_t lines) {
                           for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
                             end = text.find('\n', at);
                             learner.add(std::string_view(text).substr(at, end - at));
                           }
                           progress.advance(lines);
                         }});
  const std::string model = learner.text();
  if (model.empty())
    log.warn(
        "the truecase model is empty, and --truecase will refuse it: the text has no word behind the start of a "
        "sentence");
  OutputFile file(options.train_truecaser);
  file.stream() << model;
  file.commit();
}

}  // namespace

int run_tokenize(const TokenizeOptions& options, std::istream& in, std::ostream& out, Log& log) {
  check_options(options);
  const LineConverter converter(options);
  check_against_steps(options, converter.steps(), converter.subwords());
  // A model stores all steps, so that no file of another option is read.
  const bool stored = !options.model.empty();
  for (const std::string& path : stored
                                     ? std::vector{options.model}
                                     : std::vector{options.codes, options.vocabulary, options.first_stage.truecase_file,
                                                   options.first_stage.protected_file})
    tell_of_byte_order_mark(path, log);
  if (!converter.model() && !options.detokenize) warn_of_unknown_languages(converter.steps(), log);
  LineReader reader = open_lines(options.input, in, options.utf8.on_invalid_utf8);
  if (tells_offsets(options.output_format)) reader.leave_replacing();  // offsets count the bytes of the unchanged line
  if (!options.train_truecaser.empty()) {
    train_truecaser(options, converter, reader, log);
    reader.report(log);
    return 0;
  }
  Counts counts;
  {
    Progress progress(log, options.detokenize ? "detokenising" : "tokenising", "lines", [&] { return reader.share(); });
    run_line_pipeline(reader, options.threads,
                      {.work = line_work(options, converter, reader.name(), counts, log),
                       .take =
                           [&](const std::string& text, std::int64_t lines) {
                             out << text;
                             progress.advance(lines);
                           },
                       .idle =
                           [&] {
                             out.flush();
                             if (reader.typed()) log.clear_status();
                           }});
  }
  reader.report(log);
  if (options.stats) log.info(counts.text(reader.line_number(), converter.model() != nullptr));
  if (counts.failed == 0) return 0;
  log.info(format_count(counts.failed) + " of " + format_count(reader.line_number()) +
           " lines do not come back the same (--verbose shows what they become)");
  return 1;
}

ToolInfo tokenize_tool_info() {
  return {
      .name = "tokenize",
      .purpose = "split raw text into tokens, and join tokens to text",
      .usage = {"tokenize [-m MODEL] [options] < text > tokens", "tokenize -d [-m MODEL] [options] < tokens > text"},
      .examples = {"tokenize -l de < raw.de > tok.de", "tokenize -l en -c codes < raw.en | tokenize -d -l en -c codes",
                   "tokenize -m vocab --output-format id < raw.en", "tokenize -m vocab --check < raw.en"},
      .peers = tokenize_peer_options()};
}

}  // namespace heed
