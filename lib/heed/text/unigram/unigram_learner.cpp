#include "heed/text/unigram/unigram_learner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/base/error.h"
#include "heed/base/threads.h"
#include "heed/base/utf8.h"
#include "heed/text/unigram/piece_trie.h"
#include "heed/text/unigram/sentencepiece_model.h"

// THE PROBLEM: find a given number of pieces (strings), and a probability for each piece, such that the words of a text
// become probable when they are cut into these pieces. The probability of one segmentation of a word is the product of
// the probabilities of its pieces; the probability of the word is the sum over all its segmentations. The text does not
// say how a word is to be cut.
//
// THE METHOD (class UnigramLearner) starts with far too many pieces and removes the least useful ones:
//
// 1. find_seeds(): the first pieces are all characters and the best repeated substrings of words (class Suffixes).
// 2. Expectation maximisation (EM), kSubIterations times. expect() divides the count of each word among the word's
// segmentations, in proportion to their probabilities, and adds up how often each piece is expected to occur.
// maximise() computes new probabilities from these expected counts, and removes pieces that are expected less than
// kLeastExpected times.
// 3. prune(): removes the quarter of the pieces whose removal reduces the likelihood of the text least.
// 4. Steps 2 and 3 repeat until 1.1 times the wanted number of pieces is left; result() takes the best of them.
//
// AN EXAMPLE of one round. The text has the word "ab" three times and the word "a" four times. The pieces are a, b and
// ab, with the probabilities 0.5, 0.25 and 0.25.
//
// expect(): "ab" has two segmentations, ab (0.25) and a + b (0.5 * 0.25 = 0.125), together 0.375. Of its 3 occurrences,
// 3 * 0.25 / 0.375 = 2 are expected to be ab, and 1 is expected to be a + b. "a" has one segmentation. The expected
// counts are a: 1 + 4 = 5, b: 1, ab: 2.
//
// maximise(): without a prior the new probabilities would be 5/8, 1/8 and 2/8. The digamma function lowers rare pieces
// further: the new score is digamma(count) - digamma(sum of the counts).
//
// prune(): in the best segmentations, ab occurs 3 times and a 4 times, of 7 pieces in all: the probability of ab is
// 3/7. Without the piece ab, its 3 occurrences would be cut a + b; then a would occur 4 + 3 = 7 times and b 3 times, of
// 10 pieces, with the probability 0.7 * 0.3 = 0.21. Removing ab thus costs 3/7 * (log(3/7) - log(0.21)) = 0.31 per
// piece of the text: its loss. Pieces with the smallest losses are removed.
//
// WORDS OF THIS FILE:
//  symbol: a character as a number: an index into Text::characters.
//  place: an index into Text::symbols, where the words lie one behind the other.
//  seed, candidate: a substring that becomes one of the first pieces.
//  frequency: how often a substring occurs in the text; within a word that the text has n times it counts n times.
//  edge: a piece that starts at a place: the piece's index in UnigramLearner::pieces_ and its length, in one 32-bit
//  integer.

namespace heed {
namespace {

// The constants of the learning method, with the values of SentencePiece's trainer. kLongestPiece is the most
// characters that a piece of several characters may have. kKeptShare is the fraction of the pieces that each call of
// prune() keeps. Pruning ends when kSpareShare times the wanted number of pieces is left.
constexpr std::uint32_t kLongestPiece = 16;
constexpr std::int64_t kFewestSeeds = 100000, kSeedsPerPiece = 8;
constexpr int kSubIterations = 2;
constexpr double kKeptShare = 0.75, kSpareShare = 1.1, kLeastExpected = 0.5;

constexpr char32_t kSpace = 0x2581;

/// Returns the digamma function of x > 0, the derivative of the logarithm of the gamma function. The recurrence
/// digamma(x) = digamma(x + 1) - 1/x is applied until x is at least 6, then the asymptotic series.
double digamma(double x) {
  double sum = 0;
  for (; x < 6; x += 1) sum -= 1 / x;
  const double square = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square / 240)));
}

/// The words of a text as symbols (a symbol is the index of a character in `characters`). `symbols` holds all words,
/// one behind the other, with kEnd behind each word.
struct Text {
  static constexpr std::uint32_t kEnd = 0;
  struct Word {
    std::uint32_t begin, end;
    std::int64_t count;
  };
  std::vector<std::uint32_t> symbols;
  std::vector<Word> words;
  // The character for which each symbol stands; symbol 0 is kEnd (no character), symbol 1 is U+2581.
  std::vector<std::string> characters;

  /// Returns the text of the piece that consists of the `length` symbols from index `at` of `symbols` on.
  std::string piece(std::uint32_t at, std::uint32_t length) const {
    std::string out;
    for (std::uint32_t i = at; i < at + length; ++i) out += characters[symbols[i]];
    return out;
  }
};

/// Returns how often each character occurs in the text, U+2581 excluded.
std::vector<std::pair<char32_t, std::int64_t>> count_characters(const WordCounts& words) {
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words.word(i);
    for (std::size_t at = 0; at < word.size();) {
      const auto c = static_cast<std::size_t>(decode_utf8(word, at));
      if (c >= counts.size()) counts.resize(std::max(c + 1, 2 * counts.size()));
      counts[c] += words.count(i);
    }
  }
  std::vector<std::pair<char32_t, std::int64_t>> found;
  for (std::size_t c = 0; c < counts.size(); ++c)
    if (counts[c] > 0 && c != kSpace) found.emplace_back(static_cast<char32_t>(c), counts[c]);
  return found;
}

/// Returns the most frequent characters of the text, in the order of their code points: as many as are needed so that
/// the fraction `share` of the text consists of these characters.
std::u32string covering_characters(const WordCounts& words, double share) {
  auto counts = count_characters(words);
  std::int64_t total = 0, covered = 0;
  for (const auto& [c, count] : counts) total += count;
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::u32string kept;
  for (const auto& [c, count] : counts) {
    if (static_cast<double>(covered) >= share * static_cast<double>(total)) break;
    covered += count;
    kept += c;
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

/// Turns words into symbols (indices of characters). A user-defined symbol is cut out of its word, and so is a
/// character that covering_characters() leaves out; the parts of the word before it and behind it become words of their
/// own. A U+2581 within a word also starts a new word.
Text read_words(const WordCounts& words, const UnigramLimits& limits) {
  const std::u32string kept = covering_characters(words, limits.character_coverage);
  Text text;
  text.characters = {"", std::string(kSpaceSymbol)};
  std::vector<std::uint32_t> number_of(kept.empty() ? 1 : kept.back() + 1, Text::kEnd);
  for (const char32_t c : kept) {
    number_of[c] = static_cast<std::uint32_t>(text.characters.size());
    append_utf8(text.characters.emplace_back(), c);
  }
  std::vector<std::pair<std::string_view, std::int32_t>> symbols;
  for (const std::string& symbol : limits.user_symbols) symbols.emplace_back(symbol, 0);
  const PieceTrie user_symbols(std::move(symbols));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words.word(i);
    auto begin = static_cast<std::uint32_t>(text.symbols.size());
    text.symbols.push_back(1);
    const auto end_word = [&] {
      const auto end = static_cast<std::uint32_t>(text.symbols.size());
      if (end == begin) return;
      text.words.push_back({begin, end, words.count(i)});
      text.symbols.push_back(Text::kEnd);
      begin = end + 1;
    };
    for (std::size_t at = 0; at < word.size();) {
      std::size_t symbol = 0;
      user_symbols.prefixes(word.substr(at), [&](std::size_t bytes, std::int32_t) {
        symbol = bytes;
        return true;
      });
      if (symbol > 0) {
        at += symbol;
        end_word();
        continue;
      }
      const char32_t c = decode_utf8(word, at);
      if (c == kSpace) {
        end_word();
        text.symbols.push_back(1);
      } else if (c < number_of.size() && number_of[c] != Text::kEnd) {
        text.symbols.push_back(number_of[c]);
      } else {
        end_word();
      }
    }
    end_word();
    if (text.symbols.size() > UINT32_MAX / 2) throw Error("the text has too many different words (give less of it)");
  }
  return text;
}

/// Returns the unit, a power of two, in which the expected counts of pieces are summed as integers. Sums of integers do
/// not depend on the order of the additions, so that the result is the same for any number of threads. The unit is
/// 2^-24 for a text of fewer than 2^38 symbols; for a longer text it is larger, so that no sum passes 2^62.
double count_unit(const Text& text) {
  std::int64_t symbols = 0;
  for (const Text::Word& word : text.words) symbols += word.count * std::int64_t{word.end - word.begin};
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(symbols)));
  return std::ldexp(1.0, std::max(bits, 38) - 62);
}

/// A substring of words that may become one of the first pieces: it has `length` symbols and occurs `frequency` times
/// in the text. In the sorted list of suffixes, those from index `first` to before `last` start with this substring.
struct Candidate {
  std::uint32_t first, last, length;
  std::int64_t frequency;
};

/// Finds repeated substrings of words. The suffixes of all words are sorted by their first 16 symbols (characters), so
/// that suffixes which start with the same substring are neighbours in the sorted list. Example: the words "ab" and
/// "abc" have the sorted suffixes ab, abc, b, bc, c; the first two start with "ab", and the next two start with "b".
class Suffixes {
 public:
  explicit Suffixes(const Text& text) : text_(text) {
    const auto bits = static_cast<std::uint32_t>(std::bit_width(text.characters.size()));
    bits_ = bits;
    per_key_ = std::min(64 / bits, kLongestPiece);
    std::vector<Entry> entries;
    entries.reserve(text.symbols.size());
    for (const Text::Word& word : text.words)
      for (std::uint32_t at = word.begin; at < word.end; ++at) entries.push_back({key(at, 0), at});
    sort(entries, 0, entries.size(), 0);
    positions_.reserve(entries.size());
    for (const Entry& entry : entries) positions_.push_back(entry.at);
  }

  /// Returns the index in Text::symbols at which the i-th suffix of the sorted list starts.
  std::uint32_t operator[](std::size_t i) const { return positions_[i]; }

  /// Returns the substrings of two symbols (characters) or more that occur `min_frequency` times or more. A substring
  /// is left out if every occurrence is the beginning of the same longer substring: if "ab" always continues to "abc",
  /// only "abc" is returned.
  std::vector<Candidate> candidates(std::int64_t min_frequency) const {
    std::vector<std::int64_t> weights(text_.symbols.size());
    for (const Text::Word& word : text_.words)
      for (std::uint32_t at = word.begin; at < word.end; ++at) weights[at] = word.count;
    std::vector<std::int64_t> sums(positions_.size() + 1);
    for (std::size_t i = 0; i < positions_.size(); ++i) sums[i + 1] = sums[i] + weights[positions_[i]];

    /// A substring with which the current suffix of the sorted list starts: its length in symbols, and the index of the
    /// first suffix that starts with it. The vector `open` is a stack of such substrings, each longer than the
    /// substring below it.
    struct Open {
      std::uint32_t length, first;
    };
    std::vector<Open> open{{0, 0}};
    std::vector<Candidate> found;
    for (std::uint32_t i = 0; i <= positions_.size(); ++i) {
      const std::uint32_t shared =
          i == 0 || i == positions_.size() ? 0 : shared_length(positions_[i - 1], positions_[i]);
      std::uint32_t first = i;
      while (open.back().length > shared) {
        first = open.back().first;
        const std::int64_t frequency = sums[i] - sums[first];
        if (open.back().length > 1 && frequency >= min_frequency)
          found.push_back({first, i, open.back().length, frequency});
        open.pop_back();
      }
      if (i == positions_.size()) break;
      if (shared > open.back().length) open.push_back({shared, first});
      const std::uint32_t length = shared_length(positions_[i], positions_[i]);
      if (length > open.back().length) open.push_back({length, i});
    }
    return found;
  }

 private:
  /// A suffix of a word while the suffixes are sorted: the index in Text::symbols at which it starts (`at`), and a sort
  /// key made of some of its symbols.
  struct Entry {
    std::uint64_t key;
    std::uint32_t at;
  };

  /// Returns a sort key for the suffix that starts at index `at` of Text::symbols. The key consists of the symbols of
  /// the suffix behind the first `offset` ones, as many as fit in 64 bits, the first one in the highest bits.
  std::uint64_t key(std::uint32_t at, std::uint32_t offset) const {
    std::uint64_t key = 0;
    const std::uint32_t* symbols = text_.symbols.data() + at + offset;
    for (std::uint32_t i = 0; i < per_key_; ++i) {
      const std::uint32_t symbol = *symbols;
      key = key << bits_ | symbol;
      if (symbol != Text::kEnd) ++symbols;
    }
    return key;
  }

  /// Sorts the suffixes `entries` from index `begin` to before `end`, which are equal in their first `offset` symbols,
  /// by the sort keys of their next symbols. Suffixes with equal keys are then sorted by the symbols behind those.
  void sort(std::vector<Entry>& entries, std::size_t begin, std::size_t end, std::uint32_t offset) {
    std::sort(entries.begin() + static_cast<std::ptrdiff_t>(begin), entries.begin() + static_cast<std::ptrdiff_t>(end),
              [](const Entry& a, const Entry& b) { return a.key != b.key ? a.key < b.key : a.at < b.at; });
    const std::uint32_t next = offset + per_key_;
    if (next >= kLongestPiece) return;
    const std::uint64_t last_symbol = (std::uint64_t{1} << bits_) - 1;
    for (std::size_t i = begin; i < end;) {
      std::size_t same = i + 1;
      while (same < end && entries[same].key == entries[i].key) ++same;
      if (same > i + 1 && (entries[i].key & last_symbol) != Text::kEnd) {
        for (std::size_t j = i; j < same; ++j) entries[j].key = key(entries[j].at, next);
        sort(entries, i, same, next);
      }
      i = same;
    }
  }

  /// Returns how many symbols are equal at the beginnings of two suffixes, which start at the indices `a` and `b` of
  /// Text::symbols; 16 at most.
  std::uint32_t shared_length(std::uint32_t a, std::uint32_t b) const {
    std::uint32_t length = 0;
    while (length < kLongestPiece && text_.symbols[a + length] == text_.symbols[b + length] &&
           text_.symbols[a + length] != Text::kEnd)
      ++length;
    return length;
  }

  const Text& text_;
  std::uint32_t bits_, per_key_;
  std::vector<std::uint32_t> positions_;
};

/// Learns the pieces of a unigram model by expectation maximisation. Holds the pieces that have not been removed, their
/// probabilities, and for each index of Text::symbols the pieces that start at this index.
class UnigramLearner {
 public:
  UnigramLearner(const WordCounts& words, const UnigramLimits& limits)
      : limits_(limits),
        text_(read_words(words, limits)),
        count_unit_(count_unit(text_)),
        pool_(std::max(limits.threads, 1)) {
    characters_ = text_.characters.size() - 1;
    if (std::cmp_greater(characters_, limits.size))
      throw Error("the text has " + std::to_string(characters_) +
                  " different characters, more than there is room for (" + std::to_string(limits.size) +
                  "); a larger --max-size or a lower --character-coverage is needed");
    find_seeds();
  }

  UnigramPieces run(const std::function<void(std::int64_t)>& progress) {
    const auto wanted = static_cast<std::size_t>(kSpareShare * static_cast<double>(limits_.size));
    for (;;) {
      for (int i = 0; i < kSubIterations; ++i) maximise(expect());
      if (progress) progress(static_cast<std::int64_t>(pieces_.size()));
      if (pieces_.size() <= wanted) break;
      prune(wanted);
    }
    return result();
  }

 private:
  struct Piece {
    // An index in Text::symbols at which the piece occurs, and the number of symbols that the piece has.
    std::uint32_t at, length;
  };
  /// An edge is an occurrence of a piece in the text, stored as a 32-bit integer: the piece's index in pieces_ in the
  /// high bits, the piece's length in symbols in the low 5 bits.
  static constexpr std::uint32_t kLengthBits = 5;
  static std::uint32_t length_of(std::uint32_t edge) { return edge & ((1u << kLengthBits) - 1); }
  static std::uint32_t piece_of(std::uint32_t edge) { return edge >> kLengthBits; }

  void find_seeds();
  std::vector<double> expect();
  void maximise(const std::vector<double>& expected);
  void prune(std::size_t wanted);
  void keep(const std::vector<bool>& kept);
  UnigramPieces result() const;

  /// The buffers of one thread, which are reused from word to word: the sums of expect_word() and the scores of
  /// best_path().
  struct Scratch {
    std::vector<double> forward, backward;
    std::vector<std::int64_t> counts;
    std::vector<float> best;
    std::vector<std::uint32_t> last_edge;
  };
  void expect_word(std::uint32_t begin, std::uint32_t end, std::int64_t count, Scratch& scratch) const;
  float best_path(std::uint32_t begin, std::uint32_t end, std::uint32_t without, Scratch& scratch) const;
  template <class Use>
  void for_each_word(std::vector<Scratch>& scratch, Use&& use);
  std::vector<Scratch> make_scratch() const;

  UnigramLimits limits_;
  Text text_;
  double count_unit_;
  ThreadPool pool_;
  // The number of different characters in the text. The first pieces in pieces_, as many as this number, are these
  // single characters.
  std::size_t characters_ = 0;
  std::vector<Piece> pieces_;
  std::vector<float> scores_, probabilities_;
  // The edges (occurrences of pieces in the text), sorted by the index in Text::symbols at which the piece starts.
  std::vector<std::uint32_t> edges_;
  // For each index of Text::symbols, the index in edges_ of the first edge that starts there; and, as the last element,
  // the size of edges_.
  std::vector<std::uint32_t> first_edge_;
};

/// Sets the first pieces: all characters, then the repeated substrings with the largest frequency * length. The number
/// of substrings is 8 times the wanted number of pieces, but at least 100,000 (or all substrings if the text has
/// fewer). Also sets the first probabilities of the pieces, and finds all their occurrences in the text (the edges).
void UnigramLearner::find_seeds() {
  const Suffixes suffixes(text_);
  std::vector<Candidate> seeds = suffixes.candidates(limits_.min_frequency);
  const auto most = static_cast<std::size_t>(std::max(kFewestSeeds, kSeedsPerPiece * limits_.size));
  const auto score = [](const Candidate& seed) { return seed.frequency * seed.length; };
  const auto better = [&](const Candidate& a, const Candidate& b) {
    if (score(a) != score(b)) return score(a) > score(b);
    return a.first != b.first ? a.first < b.first : a.length < b.length;
  };
  if (seeds.size() > most) {
    std::nth_element(seeds.begin(), seeds.begin() + static_cast<std::ptrdiff_t>(most), seeds.end(), better);
    seeds.resize(most);
  }
  std::sort(seeds.begin(), seeds.end(), better);

  std::vector<double> frequencies(characters_);
  pieces_.resize(characters_);
  for (const Text::Word& word : text_.words) {
    for (std::uint32_t at = word.begin; at < word.end; ++at) {
      const std::size_t character = text_.symbols[at] - 1;
      pieces_[character] = {at, 1};
      frequencies[character] += static_cast<double>(word.count);
    }
  }
  first_edge_.assign(text_.symbols.size() + 1, 0);
  for (std::size_t at = 0; at < text_.symbols.size(); ++at) first_edge_[at + 1] = text_.symbols[at] != Text::kEnd;
  for (const Candidate& seed : seeds) {
    pieces_.push_back({suffixes[seed.first], seed.length});
    frequencies.push_back(static_cast<double>(score(seed)));
    for (std::uint32_t i = seed.first; i < seed.last; ++i) ++first_edge_[suffixes[i] + 1];
  }
  std::uint64_t edges = 0;
  for (const std::uint32_t count : first_edge_) edges += count;
  if (edges > UINT32_MAX) throw Error("the text has too many different words (give less of it)");
  std::partial_sum(first_edge_.begin(), first_edge_.end(), first_edge_.begin());
  edges_.resize(first_edge_.back());
  std::vector<std::uint32_t> next(first_edge_.begin(), first_edge_.end() - 1);
  for (std::size_t at = 0; at < text_.symbols.size(); ++at)
    if (text_.symbols[at] != Text::kEnd) edges_[next[at]++] = (text_.symbols[at] - 1) << kLengthBits | 1;
  for (std::size_t seed = 0; seed < seeds.size(); ++seed) {
    const auto edge = static_cast<std::uint32_t>(characters_ + seed) << kLengthBits | seeds[seed].length;
    for (std::uint32_t i = seeds[seed].first; i < seeds[seed].last; ++i) edges_[next[suffixes[i]]++] = edge;
  }
  const double sum = std::accumulate(frequencies.begin(), frequencies.end(), 0.0);
  scores_.resize(pieces_.size());
  probabilities_.resize(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const double frequency = std::max(frequencies[i], kLeastExpected);
    probabilities_[i] = static_cast<float>(frequency / sum);
    scores_[i] = static_cast<float>(std::log(frequency / sum));
  }
}

/// Returns buffers for each thread of the pool. Each buffer is large enough for the longest word.
std::vector<UnigramLearner::Scratch> UnigramLearner::make_scratch() const {
  std::uint32_t longest = 0;
  for (const Text::Word& word : text_.words) longest = std::max(longest, word.end - word.begin);
  std::vector<Scratch> all(static_cast<std::size_t>(pool_.size()));
  for (Scratch& scratch : all) {
    scratch.forward.resize(longest + kLongestPiece + 1);
    scratch.backward.resize(longest + kLongestPiece + 1);
    scratch.best.resize(longest + kLongestPiece + 1);
    scratch.last_edge.resize(longest + kLongestPiece + 1);
    scratch.counts.assign(pieces_.size(), 0);
  }
  return all;
}

/// Calls use(word, buffers of the calling thread) for every word of the text, on all threads.
template <class Use>
void UnigramLearner::for_each_word(std::vector<Scratch>& scratch, Use&& use) {
  pool_.run([&](int thread) {
    const Slice slice = slice_of(static_cast<std::int64_t>(text_.words.size()), pool_.size(), thread);
    for (std::int64_t i = slice.begin; i < slice.end; ++i)
      use(text_.words[static_cast<std::size_t>(i)], scratch[static_cast<std::size_t>(thread)]);
  });
}

/// Adds to scratch.counts how often each piece is expected to occur in one word, which is the symbols from index
/// `begin` to before `end` and occurs `count` times in the text. forward[i] is the sum of the probabilities of all
/// segmentations of the word's first i symbols; backward[i] is the same sum for the symbols behind the first i, times a
/// constant factor. If the probability of a long word is too small (or large) for a double, its two halves are treated
/// as two words.
void UnigramLearner::expect_word(std::uint32_t begin, std::uint32_t end, std::int64_t count, Scratch& scratch) const {
  const std::uint32_t size = end - begin;
  double* forward = scratch.forward.data();
  double* backward = scratch.backward.data();
  std::fill_n(forward, size + 1, 0.0);
  forward[0] = 1;
  for (std::uint32_t at = 0; at < size; ++at) {
    for (std::uint32_t i = first_edge_[begin + at]; i < first_edge_[begin + at + 1]; ++i) {
      const std::uint32_t next = at + length_of(edges_[i]);
      if (next <= size) forward[next] += forward[at] * static_cast<double>(probabilities_[piece_of(edges_[i])]);
    }
  }
  const double all = forward[size];
  if (!(all > 1e-280 && all < 1e280)) {
    if (size < 2) return;
    const std::uint32_t middle = begin + size / 2;
    expect_word(begin, middle, count, scratch);
    expect_word(middle, end, count, scratch);
    return;
  }
  const double weight = static_cast<double>(count) / (all * count_unit_);
  backward[size] = weight;
  for (std::uint32_t at = size; at-- > 0;) {
    double sum = 0;
    for (std::uint32_t i = first_edge_[begin + at]; i < first_edge_[begin + at + 1]; ++i) {
      const std::uint32_t next = at + length_of(edges_[i]), piece = piece_of(edges_[i]);
      if (next > size) continue;
      const double onwards = static_cast<double>(probabilities_[piece]) * backward[next];
      sum += onwards;
      scratch.counts[piece] += static_cast<std::int64_t>(forward[at] * onwards);
    }
    backward[at] = sum;
  }
}

/// Returns how often each piece is expected to occur in the text, given the current probabilities of the pieces (the E
/// step of expectation maximisation).
std::vector<double> UnigramLearner::expect() {
  std::vector<Scratch> scratch = make_scratch();
  for_each_word(scratch,
                [&](const Text::Word& word, Scratch& mine) { expect_word(word.begin, word.end, word.count, mine); });
  std::vector<double> expected(pieces_.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::int64_t sum = 0;
    for (const Scratch& one : scratch) sum += one.counts[i];
    expected[i] = static_cast<double>(sum) * count_unit_;
  }
  return expected;
}

/// Computes the probabilities and scores of the pieces from their expected counts (the M step of expectation
/// maximisation), and removes pieces that are expected less than kLeastExpected times. Single characters always stay.
void UnigramLearner::maximise(const std::vector<double>& expected) {
  std::vector<bool> kept(pieces_.size());
  double sum = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    kept[i] = i < characters_ || expected[i] >= kLeastExpected;
    if (kept[i]) sum += std::max(expected[i], kLeastExpected);
  }
  const double log_sum = digamma(sum);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    const double score = digamma(std::max(expected[i], kLeastExpected)) - log_sum;
    scores_[i] = static_cast<float>(score);
    probabilities_[i] = static_cast<float>(std::exp(score));
  }
  keep(kept);
}

/// Removes all pieces for which `kept` is false, and their edges (occurrences in the text). The pieces that stay get
/// new indices in pieces_; their order does not change.
void UnigramLearner::keep(const std::vector<bool>& kept) {
  constexpr std::uint32_t kGone = UINT32_MAX;
  std::vector<std::uint32_t> number(pieces_.size(), kGone);
  std::size_t put = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!kept[i]) continue;
    number[i] = static_cast<std::uint32_t>(put);
    pieces_[put] = pieces_[i];
    scores_[put] = scores_[i];
    probabilities_[put++] = probabilities_[i];
  }
  if (put == pieces_.size()) return;
  pieces_.resize(put);
  std::uint32_t edge = 0, next = 0;
  for (std::size_t at = 0; at + 1 < first_edge_.size(); ++at) {
    const std::uint32_t end = first_edge_[at + 1];
    for (; next < end; ++next) {
      const std::uint32_t piece = number[piece_of(edges_[next])];
      if (piece != kGone) edges_[edge++] = piece << kLengthBits | length_of(edges_[next]);
    }
    first_edge_[at + 1] = edge;
  }
  edges_.resize(edge);
}

/// Returns the score of the best segmentation of a word that does not use the piece with the index `without`; the word
/// is the symbols from index `begin` to before `end`. scratch.last_edge[i] becomes the last edge (piece) of the best
/// segmentation of the word's first i symbols.
float UnigramLearner::best_path(std::uint32_t begin, std::uint32_t end, std::uint32_t without, Scratch& scratch) const {
  const std::uint32_t size = end - begin;
  float* best = scratch.best.data();
  std::fill_n(best, size + 1, -std::numeric_limits<float>::infinity());
  best[0] = 0;
  for (std::uint32_t at = 0; at < size; ++at) {
    for (std::uint32_t i = first_edge_[begin + at]; i < first_edge_[begin + at + 1]; ++i) {
      const std::uint32_t next = at + length_of(edges_[i]), piece = piece_of(edges_[i]);
      if (next > size || piece == without) continue;
      const float score = best[at] + scores_[piece];
      if (score <= best[next]) continue;
      best[next] = score;
      scratch.last_edge[next] = edges_[i];
    }
  }
  return best[size];
}

/// Removes pieces until three quarters of them are left, or `wanted` pieces if that is more. The pieces that no best
/// segmentation of a word uses are always removed; then the pieces with the smallest losses are removed. A piece's loss
/// is the amount by which the log-likelihood of the text falls if every occurrence of the piece is cut in the best way
/// without the piece.
void UnigramLearner::prune(std::size_t wanted) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<Scratch> scratch = make_scratch();
  for_each_word(scratch, [&](const Text::Word& word, Scratch& mine) {
    best_path(word.begin, word.end, kNone, mine);
    for (std::uint32_t at = word.end - word.begin; at > 0; at -= length_of(mine.last_edge[at]))
      mine.counts[piece_of(mine.last_edge[at])] += word.count;
  });
  std::vector<double> counts(pieces_.size());
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    for (const Scratch& one : scratch) counts[i] += static_cast<double>(one.counts[i]);
    sum += counts[i];
  }
  constexpr float kRemoved = -std::numeric_limits<float>::infinity();
  std::vector<float> losses(pieces_.size(), kRemoved);
  pool_.run([&](int thread) {
    const Slice slice = slice_of(static_cast<std::int64_t>(pieces_.size()), pool_.size(), thread);
    Scratch& mine = scratch[static_cast<std::size_t>(thread)];
    for (auto i = static_cast<std::size_t>(slice.begin); std::cmp_less(i, slice.end); ++i) {
      if (i < characters_ || counts[i] == 0) continue;
      const auto [at, length] = pieces_[i];
      if (best_path(at, at + length, static_cast<std::uint32_t>(i), mine) > scores_[i]) continue;
      double parts = 0, log_parts = 0;
      for (std::uint32_t end = length; end > 0; end -= length_of(mine.last_edge[end])) {
        log_parts += std::log(counts[piece_of(mine.last_edge[end])] + counts[i]);
        ++parts;
      }
      const double alternative = log_parts - parts * std::log(sum + counts[i] * (parts - 1));
      losses[i] = static_cast<float>(counts[i] / sum * (std::log(counts[i]) - std::log(sum) - alternative));
    }
  });
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = static_cast<std::uint32_t>(characters_); i < losses.size(); ++i)
    if (losses[i] != kRemoved) order.push_back(i);
  const auto share = static_cast<std::size_t>(kKeptShare * static_cast<double>(pieces_.size()));
  const std::size_t room = std::max(wanted, share) - characters_;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return losses[a] > losses[b]; });
  if (order.size() > room) order.resize(room);
  std::vector<bool> kept(pieces_.size());
  std::fill_n(kept.begin(), characters_, true);
  for (const std::uint32_t i : order) kept[i] = true;
  keep(kept);
}

/// Returns the learnt pieces with their scores: all single characters, and as many longer pieces with the highest
/// scores as the wanted number of pieces has room for.
UnigramPieces UnigramLearner::result() const {
  UnigramPieces all;
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    all.emplace_back(text_.piece(pieces_[i].at, pieces_[i].length), scores_[i]);
  const auto better = [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  };
  const auto first_long = all.begin() + static_cast<std::ptrdiff_t>(characters_);
  std::sort(first_long, all.end(), better);
  all.resize(std::min(all.size(), static_cast<std::size_t>(limits_.size)));
  std::sort(all.begin(), all.end(), better);
  return all;
}

}  // namespace

UnigramPieces learn_unigram(const WordCounts& words, const UnigramLimits& limits,
                            const std::function<void(std::int64_t)>& progress) {
  return UnigramLearner(words, limits).run(progress);
}

}  // namespace heed
