#include "heed/run/build_vocab.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "heed/base/pages.h"
#include "heed/base/streams.h"
#include "heed/base/threads.h"
#include "heed/base/utf8.h"
#include "heed/metrics/score_report.h"
#include "heed/run/line_pipeline.h"
#include "heed/run/peer_options.h"
#include "heed/text/bpe/bpe_learner.h"
#include "heed/text/strings/string_ids.h"
#include "heed/text/unigram/sentencepiece_model.h"
#include "heed/text/unigram/unigram_learner.h"

namespace heed {

namespace {

// The default of --max-size for vocabularies of --type bpe and unigram.
constexpr std::int64_t kDefaultSize = 8000;
// The largest text, in bytes, that the counts of --dict-input may describe. All sums of counts in such a text fit in 64
// bits and are exact as `double`.
constexpr std::int64_t kMostCountedBytes = 1'000'000'000'000'000;

/// One text to learn from, with its words and their counts.
struct Corpus {
  std::string path, language;
  WordCounts words;
  // The number of all lines, and the number of lines that contain words.
  std::int64_t lines = 0, sentences = 0;
};

/// Returns the texts to learn from. Throws UsageError if other options do not fit the texts, or if several inputs of
/// the program are standard input.
std::vector<Corpus> list_corpora(const BuildVocabOptions& options) {
  std::vector<std::string> paths = options.files;
  paths.insert(paths.end(), options.input.begin(), options.input.end());
  if (paths.empty()) paths = {"-"};
  std::vector<NamedFile> inputs;
  for (const std::string& path : paths) inputs.push_back({"--input", tool_input(path).path});
  inputs.insert(inputs.end(), {{"--dev", options.dev},
                               {"--truecase", options.first_stage.truecase_file},
                               {"--protected", options.first_stage.protected_file}});
  check_standard_input(inputs);
  const std::vector<std::string> codes = split_languages(options.first_stage.steps.language);
  if (codes.size() != 1 && codes.size() != paths.size())
    throw UsageError("--language lists " + std::to_string(codes.size()) + " codes for " + std::to_string(paths.size()) +
                     " texts (give one for all of them, or one for each)");
  if (!options.write_vocabulary.empty() && options.write_vocabulary.size() != paths.size())
    throw UsageError("--write-vocabulary names " + std::to_string(options.write_vocabulary.size()) + " files for " +
                     std::to_string(paths.size()) + " texts (name one for each)");
  std::vector<Corpus> corpora(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    corpora[i].path = paths[i];
    corpora[i].language = codes.size() == 1 ? codes[0] : codes[i];
  }
  return corpora;
}

/// Tokenises the text `corpus.path` and counts its words.
void count_words(Corpus& corpus, TextSteps steps, const BuildVocabOptions& options, std::istream& in, Log& log) {
  steps.language = corpus.language;
  const TextPipeline pipeline(steps);
  LineReader reader = open_lines(corpus.path, in, options.utf8.on_invalid_utf8);
  Progress progress(log, "reading " + reader.name(), "lines", [&] { return reader.share(); });
  WordCounter counter(thread_count(options.threads));
  run_line_pipeline(reader, options.threads,
                    {.work =
                         [&](const std::string& line, std::int64_t, std::string& text) {
                           thread_local std::string tokens;
                           pipeline.tokenize(line, tokens);
                           text.append(tokens).append(1, '\n');
                         },
                     .take = [&](const std::string&, std::int64_t lines) { progress.advance(lines); },
                     .take_round = [&](const std::vector<std::string_view>& texts,
                                       const RunOnThreads& run) { counter.add(texts, run); }});
  corpus.sentences = counter.sentences();
  corpus.words = counter.take();
  corpus.lines = reader.line_number();
  reader.report(log);
}

/// Reads words with their counts in the format of subword-nmt's get-vocab. `bytes` is the size of the text that the
/// counts read so far describe, with a space after each word. Throws Error if the size passes kMostCountedBytes.
void read_counts(Corpus& corpus, std::int64_t& bytes, const BuildVocabOptions& options, std::istream& in, Log& log) {
  LineReader reader = open_lines(corpus.path, in, options.utf8.on_invalid_utf8);
  for (std::string line; reader.next(line);) {
    const auto [word, count] = parse_counted(line, reader.position());
    const std::int64_t length = std::ssize(word) + 1;
    if (count > (kMostCountedBytes - bytes) / length)
      throw Error(reader.position(),
                  "the counts up to this line describe a text of more than 10^15 bytes, which is "
                  "too large to learn from (divide all counts by the same number)");
    bytes += count * length;
    corpus.words.add(word, count);
  }
  corpus.lines = reader.line_number();
  reader.report(log);
}

/// Returns the word counts of all corpora added up; words are in the order of first occurrence. Empties the corpora
/// unless `keep` is true.
WordCounts join_counts(std::vector<Corpus>& corpora, bool keep) {
  if (corpora.size() == 1 && !keep) return std::exchange(corpora.front().words, {});
  WordCounts all;
  for (Corpus& corpus : corpora) {
    if (keep)
      for (std::size_t i = 0; i < corpus.words.size(); ++i) all.add(corpus.words.word(i), corpus.words.count(i));
    else
      corpus.words.consume([&](std::string_view word, std::int64_t count) { all.add(word, count); });
  }
  return all;
}

/// Returns how often each piece occurs in the text from which `words` was counted. A character model has the piece
/// `<space>` before each word except the first word of a sentence.
WordCounts count_pieces(const WordCounts& words, const Subwords& subwords, std::int64_t sentences) {
  WordCounts pieces;
  if (subwords.type() == SubwordType::characters) pieces.add(kSpacePiece, words.total() - sentences);
  for (std::size_t i = 0; i < words.size(); ++i)
    subwords.split(words.word(i), [&](std::string_view piece, int) { pieces.add(piece, words.count(i)); });
  return pieces;
}

void write_counts(const WordCounts& pieces, const std::string& path) {
  OutputFile file(path);
  for (const std::size_t i : pieces.by_count())
    if (pieces.count(i) > 0) file.stream() << pieces.word(i) << ' ' << pieces.count(i) << '\n';
  file.commit();
}

/// Returns the number of different characters that occur before the end of a word, plus the number of different
/// characters that end a word. --total-symbols subtracts the sum from --merges.
std::int64_t count_characters(const WordCounts& words) {
  StringIds inside, final;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words.word(i);
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t start = at;
      decode_utf8(word, at);
      (at == word.size() ? final : inside).add(word.substr(start, at - start));
    }
  }
  return inside.size() + final.size();
}

/// Learns BPE merges from `words`. When `keep` is true, leaves `words` intact; otherwise frees the memory of `words`
/// while learning.
BpeLearnt learn_merges(WordCounts& words, bool keep, const BuildVocabOptions& options, Log& log) {
  BpeLimits limits;
  limits.min_frequency = options.min_frequency.value_or(2);
  if (options.merges) limits.merges = *options.merges;
  if (options.total_symbols) {
    const std::int64_t characters = count_characters(words);
    if (characters > limits.merges)
      throw Error("the text has " + std::to_string(characters) + " different characters, within words and at their " +
                  "ends, more than --merges " + std::to_string(limits.merges) + " --total-symbols (a larger number)");
    limits.merges -= characters;
  }
  const std::int64_t size = options.max_size.value_or(options.merges ? 0 : kDefaultSize);
  if (size > 0) limits.symbols = size - kReservedIds;
  Progress progress(log, "learning", "merges", options.merges.value_or(0));
  const auto report = [&](std::int64_t done) { progress.to(done); };
  BpeLearnt learnt =
      keep ? learn_bpe(std::as_const(words), limits, report) : learn_bpe(std::move(words), limits, report);
  if (learnt.exhausted)
    log.warn("the text gives " + std::to_string(learnt.merges.pairs.size()) +
             " merges only, fewer than asked for: no other pair occurs " + std::to_string(limits.min_frequency) +
             " times (more text, or a lower --min-frequency)");
  return learnt;
}

/// Adds pieces "<unused0>", "<unused1>", ... until the number of pieces is a multiple of `multiple`.
void pad(std::vector<std::string>& pieces, std::int64_t multiple) {
  constexpr std::string_view start = "<unused";
  StringIds taken;
  for (const std::string& piece : pieces)
    if (piece.starts_with(start)) taken.add(piece);
  std::int64_t number = 0;
  while (std::ssize(pieces) % multiple != 0) {
    std::string unused = std::string(start) + std::to_string(number++) + ">";
    if (taken.find(unused) == kNoId) pieces.push_back(std::move(unused));
  }
}

/// Shortens `order`, which lists the pieces of a character model by falling count, to its first `size` pieces. If
/// `<space>` is not among them, it takes the last place: without `<space>`, a model could not tell words apart.
void shorten(std::size_t size, const WordCounts& counts, std::vector<std::size_t>& order) {
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(size);
  const auto space = std::find_if(end, order.end(), [&](std::size_t i) { return counts.word(i) == kSpacePiece; });
  if (space != order.end()) *std::prev(end) = *space;
  order.resize(size);
}

/// Removes the rarest characters from the end of `order`, which lists characters and `<space>` by falling count. The
/// remaining characters make up at least the fraction `share` of the text. `<space>` remains in any case.
void drop_rarest_characters(double share, const WordCounts& counts, std::vector<std::size_t>& order) {
  std::int64_t total = 0, covered = 0;
  const auto count = [&](std::size_t i) { return counts.word(i) == kSpacePiece ? 0 : counts.count(i); };
  for (const std::size_t i : order) total += count(i);
  std::size_t kept = 0;
  bool has_space = false;
  while (kept < order.size() && static_cast<double>(covered) < share * static_cast<double>(total)) {
    has_space |= counts.word(order[kept]) == kSpacePiece;
    covered += count(order[kept++]);
  }
  shorten(has_space ? kept : kept + 1, counts, order);
}

/// Returns the pieces in the order of their ids: by falling count, and by their bytes when counts are equal. A bpe
/// model has a piece for a single character even when merges have used up all occurrences of the character, so that no
/// word of known characters is unknown. A character model has `<space>` even when the text has one word on each line.
std::vector<std::string> choose_pieces(const WordCounts& counts, const BuildVocabOptions& options, Log& log) {
  const std::int64_t least = options.type == VocabularyType::bpe ? 0 : options.min_frequency.value_or(1);
  const bool characters = options.type == VocabularyType::characters;
  // The count and the index of each piece. Sorting compares mostly counts, and looks up pieces only when counts are
  // equal.
  std::vector<std::pair<std::int64_t, std::size_t>> ranked;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool frequent = counts.count(i) >= least || (characters && counts.word(i) == kSpacePiece);
    if (frequent && Vocabulary::is_piece(counts.word(i))) ranked.emplace_back(counts.count(i), i);
  }
  std::sort(ranked.begin(), ranked.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : counts.word(a.second) < counts.word(b.second);
  });
  std::vector<std::size_t> order;
  for (const auto& [count, index] : ranked) order.push_back(index);
  if (options.character_coverage) drop_rarest_characters(*options.character_coverage, counts, order);
  const std::size_t found = order.size();
  const auto most = static_cast<std::size_t>(options.max_size.value_or(INT32_MAX) - kReservedIds);
  if (found > most) {
    if (characters)
      shorten(most, counts, order);
    else
      order.resize(most);
    if (options.type != VocabularyType::words)
      log.warn("--max-size leaves out " + std::to_string(found - most) + " of " + std::to_string(found) +
               " pieces; text with them gets <unk> (a larger size keeps all characters)");
  } else if (found < most && options.max_size && options.type != VocabularyType::bpe) {
    log.warn("the text gives " + std::to_string(found + kReservedIds) + " pieces only, fewer than --max-size " +
             std::to_string(*options.max_size));
  }
  std::vector<std::string> pieces;
  for (std::int32_t id = 0; id < kReservedIds; ++id) pieces.emplace_back(reserved_piece(id));
  for (const std::size_t i : order) pieces.emplace_back(counts.word(i));
  pad(pieces, options.pad_to_multiple);
  return pieces;
}

/// Returns the text steps that read the texts to learn from. Sets `stored` to those that the vocabulary stores: it
/// serves sentences where the texts are trees, of which --mode leaves takes the words. Throws UsageError where --mode
/// does not fit --type.
TextSteps reading_steps(const BuildVocabOptions& options, TextSteps& stored) {
  FirstStageOptions first_stage = options.first_stage;
  TokenMode& mode = first_stage.steps.mode;
  const bool given = is_given(options.given, "mode");
  if (options.type == VocabularyType::trees && !given) mode = TokenMode::trees;
  if ((options.type == VocabularyType::trees) != (mode == TokenMode::trees))
    throw UsageError("--mode " + std::string(enum_name(mode)) + ": does not fit --type " +
                     std::string(enum_name(options.type)) + " (trees need --type trees, which needs no --mode)");
  stored = first_stage.resolved();
  const TextSteps steps = stored;
  if (stored.mode == TokenMode::leaves) stored.mode = TokenMode::ascii_words;
  return steps;
}

/// Throws UsageError for options that do not fit --type or each other.
void check_options(const BuildVocabOptions& options) {
  const std::string type(enum_name(options.type));
  if (options.type != VocabularyType::bpe) {
    if (options.merges) throw UsageError("--merges: --type " + type + " has no merges");
    if (!options.codes_output.empty()) throw UsageError("--codes-output: --type " + type + " has no merges");
  } else if (options.utf8.on_invalid_utf8 == InvalidUtf8::keep) {
    throw UsageError("--on-invalid-utf8 keep: the merges of --type bpe are UTF-8 (use replace or fail)");
  }
  const bool unigram = options.type == VocabularyType::unigram;
  const auto learns = [&](bool given, bool able, const std::string& name) {
    if (given && !able) throw UsageError("--" + name + ": --type " + type + " has no such thing (--type unigram has)");
  };
  learns(options.character_coverage.has_value(), unigram || options.type == VocabularyType::characters,
         "character-coverage");
  learns(options.byte_fallback, unigram, "byte-fallback");
  learns(!options.user_symbols.empty(), unigram, "user-symbols");
  if (options.total_symbols && !options.merges) throw UsageError("--total-symbols: needs --merges");
  if (options.dict_input && options.type == VocabularyType::characters)
    throw UsageError("--dict-input: does not say where sentences end, which --type char needs for its <space>");
  if (!options.dev.empty() && !options.max_size && options.type != VocabularyType::bpe && !unigram)
    throw UsageError("--dev: needs --max-size, which it varies");
  if (options.dev.empty() && is_given(options.given, "format"))
    throw UsageError("--format: sets the format of the table of --dev (give --dev too)");
  if (!options.dev.empty() && options.merges)
    throw UsageError("--dev: varies --max-size, and has no use with --merges");
  std::vector<std::string> outputs = options.write_vocabulary;
  outputs.insert(outputs.end(),
                 {options.output.empty() ? "-" : options.output, options.codes_output, options.counts_output});
  if (std::count(outputs.begin(), outputs.end(), "-") > 1)
    throw UsageError("standard output (-) can take only one output (name a file for the other output)");
}

/// Throws UsageError when --shortlist is given together with options for learning a vocabulary, or when an option of
/// shortlists is given without --shortlist.
void check_shortlist_options(const BuildVocabOptions& options) {
  const std::vector<std::string>& texts = options.shortlist.texts;
  const bool shortlist = !texts.empty();
  constexpr std::array of_both = {"threads", "output", "on-invalid-utf8", "quiet", "verbose", "log", "shortlist"};
  constexpr std::array of_shortlist = {"best", "frequent", "iterations", "alignments"};
  const auto contains = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& name : options.given) {
    if (contains(of_both, name) || contains(of_shortlist, name) == shortlist) continue;
    if (name == "file")
      throw UsageError("a text is named that --shortlist has no use for (it names its two texts itself)");
    throw UsageError("--" + name + (shortlist ? ": has no use with --shortlist" : ": needs --shortlist"));
  }
  if (!shortlist) return;
  if (texts.size() != 2)
    throw UsageError("--shortlist: names " + std::to_string(texts.size()) + (texts.size() == 1 ? " text" : " texts") +
                     " (a source and a target text of pieces are needed)");
  if (!options.shortlist.alignments.empty() && is_given(options.given, "iterations"))
    throw UsageError("--iterations: has no use with --alignments");
  check_standard_input({{"--shortlist", tool_input(texts[0]).path},
                        {"--shortlist", tool_input(texts[1]).path},
                        {"--alignments", options.shortlist.alignments}});
}

/// The words of all texts to learn from.
struct LearningData {
  std::vector<Corpus> corpora;
  // The word counts of all corpora added up.
  WordCounts words = {};
  std::int64_t lines = 0, sentences = 0, occurrences = 0, different = 0;
};

/// Reads all texts and counts their words.
LearningData read_texts(std::vector<Corpus> corpora, const TextSteps& steps, const BuildVocabOptions& options,
                        std::istream& in, Log& log) {
  LearningData read{.corpora = std::move(corpora)};
  std::int64_t bytes = 0;
  for (Corpus& corpus : read.corpora) {
    options.dict_input ? read_counts(corpus, bytes, options, in, log) : count_words(corpus, steps, options, in, log);
    if (corpus.words.total() == 0)
      throw Error(Position{input_name(corpus.path)},
                  "there are no words in it (a text with one sentence per line is needed)");
    read.lines += corpus.lines;
    read.sentences += corpus.sentences;
  }
  read.words = join_counts(read.corpora, !options.write_vocabulary.empty());
  read.occurrences = read.words.total();
  read.different = static_cast<std::int64_t>(read.words.size());
  // Before learning begins, the memory that reading has used is returned to the operating system.
  return_free_heap();
  return read;
}

/// Returns the symbols of the list "A,B,..." of --user-symbols. Throws UsageError for a symbol that cannot be a piece
/// of its own, because another piece would have the same name.
std::vector<std::string> split_symbols(const std::string& list, bool byte_fallback) {
  std::vector<std::string> symbols;
  StringIds seen;
  for (std::size_t at = 0; !list.empty() && at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string symbol = list.substr(at, end - at);
    if (!Vocabulary::is_piece(symbol) || symbol.find(kSpaceSymbol) != std::string::npos ||
        std::cmp_not_equal(seen.add(symbol), symbols.size()))
      throw UsageError("--user-symbols '" + list + "': '" + symbol +
                       "' cannot be a symbol (different strings without spaces or U+2581, with commas between them)");
    if (byte_fallback && byte_of_piece(symbol) >= 0)
      throw UsageError("--user-symbols: '" + symbol + "' is a piece of --byte-fallback already (leave it out)");
    symbols.push_back(symbol);
    at = end + 1;
  }
  return symbols;
}

/// Learns a unigram model. After the reserved ids, the ids are in this order: user-defined symbols, bytes, then learnt
/// pieces by falling probability.
TextModel learn_unigram_model(const WordCounts& words, const TextSteps& steps, const BuildVocabOptions& options,
                              Log& log) {
  using Kind = SentencePieceModel::Kind;
  SentencePieceModel model;
  model.byte_fallback = options.byte_fallback;
  model.pieces.push_back({std::string(reserved_piece(kUnknownId)), 0, Kind::unknown});
  const std::vector<std::string> symbols = split_symbols(options.user_symbols, options.byte_fallback);
  for (const std::string& symbol : symbols) model.pieces.push_back({symbol, 0, Kind::user_defined});
  for (int byte = 0; options.byte_fallback && byte < 256; ++byte)
    model.pieces.push_back({byte_piece(static_cast<unsigned char>(byte)), 0, Kind::byte});
  const std::int64_t size = options.max_size.value_or(kDefaultSize);
  UnigramLimits limits{.size = size - kReservedIds - std::ssize(model.pieces) + 1,
                       .min_frequency = options.min_frequency.value_or(2),
                       .user_symbols = symbols,
                       .threads = thread_count(options.threads)};
  if (limits.size <= 0)
    throw Error("--max-size " + std::to_string(size) + ": the reserved pieces, bytes and user symbols take " +
                std::to_string(size - limits.size) + " already (a larger one is needed)");
  if (options.character_coverage) limits.character_coverage = *options.character_coverage;
  Progress progress(log, "learning", "rounds", 0);
  std::int64_t rounds = 0;
  for (const auto& [piece, score] : learn_unigram(words, limits, [&](std::int64_t) { progress.to(++rounds); })) {
    const bool taken = options.byte_fallback && byte_of_piece(piece) >= 0;
    if (Vocabulary::is_piece(piece) && !taken) model.pieces.push_back({piece, score});
  }
  if (const std::int64_t found = std::ssize(model.pieces) - 1 + kReservedIds; found < size)
    log.warn("the text gives " + std::to_string(found) + " pieces only, fewer than --max-size " + std::to_string(size));
  std::vector<std::string> padded = SentencePiece(model, "vocabulary").vocabulary();
  const std::size_t used = padded.size();
  pad(padded, options.pad_to_multiple);
  for (std::size_t i = used; i < padded.size(); ++i) model.pieces.push_back({padded[i], 0, Kind::unused});
  return TextModel(steps, Subwords(std::make_shared<const SentencePiece>(std::move(model), "vocabulary")),
                   std::make_shared<const Vocabulary>(padded));
}

/// Learns a text model with options.max_size pieces. Returns the model and the counts of its pieces. With --type bpe,
/// learning frees the words in `learning` unless `keep` is true.
std::pair<TextModel, WordCounts> learn_model(LearningData& learning, bool keep, const TextSteps& steps,
                                             const BuildVocabOptions& options, Log& log) {
  if (options.type == VocabularyType::unigram) {
    TextModel model = learn_unigram_model(learning.words, steps, options, log);
    WordCounts counts = count_pieces(learning.words, model.subwords(), learning.sentences);
    return {std::move(model), std::move(counts)};
  }
  Subwords subwords(options.type == VocabularyType::characters ? SubwordType::characters : SubwordType::words);
  WordCounts counts;
  if (options.type == VocabularyType::bpe) {
    BpeLearnt learnt = learn_merges(learning.words, keep, options, log);
    subwords = Subwords(std::make_shared<const BpeEncoder>(std::move(learnt.merges)));
    counts = std::move(learnt.pieces);
  } else {
    counts = count_pieces(learning.words, subwords, learning.sentences);
  }
  const auto vocabulary = std::make_shared<const Vocabulary>(choose_pieces(counts, options, log));
  return {TextModel(steps, subwords, vocabulary), std::move(counts)};
}

/// Measures how well a vocabulary covers a text: how many pieces the text is split into, and how many are unknown.
struct Coverage {
  std::int64_t size = 0, pieces = 0, words = 0, unknown = 0;
  // The number of pieces in each line of the text, in ascending order.
  std::vector<std::int64_t> lengths;

  Coverage(const TextModel& model, const std::vector<std::string>& lines_of_tokens) : size(model.size()) {
    for (const std::string& tokens : lines_of_tokens) {
      std::int64_t length = 0, last_word = -1;
      model.subwords().split(tokens, [&](std::string_view piece, int word) {
        ++length;
        unknown += !model.vocabulary().contains(piece);
        last_word = word;
      });
      pieces += length;
      words += last_word + 1;
      lengths.push_back(length);
    }
    std::sort(lengths.begin(), lengths.end());
  }

  double unknown_share() const { return pieces > 0 ? static_cast<double>(unknown) / static_cast<double>(pieces) : 0; }
  double pieces_a_word() const { return words > 0 ? static_cast<double>(pieces) / static_cast<double>(words) : 0; }
  /// Returns the smallest length in pieces that 99 % of the lines do not exceed.
  std::int64_t length_99() const { return lengths.empty() ? 0 : lengths[(lengths.size() * 99 + 99) / 100 - 1]; }
  /// Returns a row of the report of --dev.
  std::string row(bool json) const {
    char text[160];
    std::snprintf(text, sizeof text,
                  json ? " {\"size\": %lld, \"unknown_rate\": %.6g, \"pieces_per_word\": %.6g, "
                         "\"length_99th_percentile\": %lld}"
                       : "%8lld %9.3f %% %12.3f  %8lld pieces",
                  static_cast<long long>(size), unknown_share() * (json ? 1 : 100), pieces_a_word(),
                  static_cast<long long>(length_99()));
    return text;
  }
};

/// Learns vocabularies of a quarter, half, all and twice the size --max-size. Logs how well each vocabulary covers the
/// raw `lines` of the file --dev, or why a size is too small for the text.
void report_coverage(LearningData& learning, const TextSteps& steps, const BuildVocabOptions& options,
                     std::vector<std::string> lines, Log& log) {
  TextSteps dev_steps = steps;
  dev_steps.language = split_languages(steps.language).front();
  const TextPipeline pipeline(dev_steps);
  for (std::string& line : lines) line = pipeline.tokenize(line);
  const std::int64_t size = options.max_size.value_or(kDefaultSize);
  std::ostringstream silence;
  Log quiet(silence, log.name(), Verbosity::quiet);
  const bool json = options.format == CoverageFormat::json;
  log.plain(json ? "[" : "    size    unknown  pieces/word  99% of lines have at most");
  for (const std::int64_t asked : {size / 4, size / 2, size, 2 * size}) {
    BuildVocabOptions one = options;
    one.max_size = std::max<std::int64_t>(asked, kReservedIds + 1);
    std::string row;
    try {
      const TextModelParts learnt = learn_model(learning, true, steps, one, quiet).first.parts();
      // The model is rebuilt as if it were read from a file, which undoes merges whose piece is not in the vocabulary.
      row = Coverage(TextModel::from_parts(learnt, "vocabulary"), lines).row(json);
    } catch (const Error& error) {
      // Learning has succeeded with the size --max-size, so that only a smaller size can be impossible.
      if (asked >= size) throw;
      char start[40];
      std::snprintf(start, sizeof start, json ? " {\"size\": %lld, \"error\": " : "%8lld  ",
                    static_cast<long long>(*one.max_size));
      row = start + (json ? json_string(error.what()) + "}" : std::string(error.what()));
    }
    log.plain(row + (json && asked != 2 * size ? "," : ""));
  }
  if (json) log.plain("]");
}

}  // namespace

int run_build_vocab(const BuildVocabOptions& options, std::istream& in, std::ostream& out, Log& log) {
  check_shortlist_options(options);
  if (!options.shortlist.texts.empty())
    return build_shortlist(options.shortlist, options.threads, options.utf8, in, out, log);
  check_options(options);
  std::vector<Corpus> corpora = list_corpora(options);
  TextSteps stored;
  const TextSteps steps = reading_steps(options, stored);
  for (const std::string& path : {options.first_stage.truecase_file, options.first_stage.protected_file, options.dev})
    tell_of_byte_order_mark(path, log);
  if (!options.dict_input) warn_of_unknown_languages(steps, log);
  std::vector<std::string> dev;
  if (!options.dev.empty()) dev = read_lines(options.dev, options.utf8.on_invalid_utf8);
  LearningData learning = read_texts(std::move(corpora), steps, options, in, log);
  const auto [model, counts] = learn_model(learning, !options.dev.empty(), stored, options, log);
  if (!options.codes_output.empty()) {
    OutputFile file(options.codes_output);
    file.stream() << model.subwords().bpe()->merges().text();
    file.commit();
  }
  if (!options.counts_output.empty()) write_counts(counts, options.counts_output);
  for (std::size_t i = 0; i < options.write_vocabulary.size(); ++i)
    write_counts(count_pieces(learning.corpora[i].words, model.subwords(), learning.corpora[i].sentences),
                 options.write_vocabulary[i]);
  model.write(out);
  // Without this line, stderr is the report alone, which another program can read.
  if (options.dev.empty() || options.format != CoverageFormat::json)
    log.info(format_count(model.size()) + " pieces from " + format_count(learning.lines) + " lines, " +
             format_count(learning.occurrences) + " words (" + format_count(learning.different) + " different)");
  if (!options.dev.empty()) report_coverage(learning, steps, options, std::move(dev), log);
  return 0;
}

ToolInfo build_vocab_tool_info() {
  return {.name = "build-vocab",
          .purpose = "learn a vocabulary of words, characters, byte-pair or unigram pieces from raw text",
          .usage = {"build-vocab [--type words|bpe|unigram|char|trees] [-s SIZE] [options] [FILE...] > vocab",
                    "build-vocab --shortlist SOURCE TARGET [options] > shortlist"},
          .examples = {"build-vocab --type bpe --merges 10000 --lowercase -l en,de train.en train.de > joint.vocab",
                       "build-vocab --type unigram -s 8000 --byte-fallback train.en > en.vocab",
                       "build-vocab --type words --min-frequency 2 --mode words < train.en > words.vocab",
                       "build-vocab --type trees train.trees > trees.vocab",
                       "build-vocab --shortlist pieces.en pieces.de > en-de.shortlist"},
          .peers = build_vocab_peer_options()};
}

}  // namespace heed
