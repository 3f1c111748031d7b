#include "heed/train/translate_examples.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>

#include "heed/decode/parse.h"
#include "heed/text/trees/linear_tree.h"

namespace heed {
namespace {

/// The number of sentences in a batch, which one thread translates.
constexpr std::size_t kSentences = 64;

}  // namespace

std::vector<std::string> translate_examples(const Model<float>& model, ParameterValues<float>& parameters,
                                            Precision precision, const Examples& examples, const TextModel& target,
                                            bool tokens, const TreeSentences* trees, ThreadPool& pool,
                                            Communicator& ranks, const InterruptGuard& interrupts) {
  // Sentences are sorted by length, so that the translations of a batch end at about the same decoding step.
  std::vector<std::int32_t> order(static_cast<std::size_t>(examples.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return examples.size_of(a).source > examples.size_of(b).source;
  });

  // Every rank translates every so many batches of the list.
  const std::size_t batches = (order.size() + kSentences - 1) / kSentences;
  const auto first = static_cast<std::size_t>(ranks.rank()), stride = static_cast<std::size_t>(ranks.size());
  std::vector<std::string> out(order.size());
  std::atomic<std::size_t> next = first;
  const auto packed = std::make_shared<PackedParameters<float>>(parameters);
  SearchOptions options{.beam_size = 1};
  if (trees) options = without_length_limit(options);
  if (const auto most = longest_sequence(model.config())) options.limit_sequences(*most);
  const auto words_of = [&](std::size_t example) { return static_cast<int>(trees->words[example].size()); };
  pool.run([&](int) {
    Decoder decoder(model, parameters, precision, packed);
    Batch batch;
    for (std::size_t index; (index = next.fetch_add(stride)) < batches && interrupts.signal() == 0;) {
      const std::size_t begin = index * kSentences;
      const std::size_t end = std::min(order.size(), begin + kSentences);
      examples.fill(std::span(order).subspan(begin, end - begin), batch);
      std::vector<int> words;
      for (std::size_t i = begin; trees && i < end; ++i)
        words.push_back(std::min(words_of(static_cast<std::size_t>(order[i])), options.max_output_length));
      const auto found = trees ? parse(decoder, batch.source, words, trees->pieces, options)
                               : decoder.translate(batch.source, options);
      for (std::size_t i = begin; i < end; ++i) {
        if (found[i - begin].empty()) continue;
        const auto& ids = found[i - begin].front().ids;
        const auto example = static_cast<std::size_t>(order[i]);
        // A tree has all words of its sentence, so that there is none of a sentence that is too long for the model.
        if (trees && words_of(example) > options.max_output_length) continue;
        out[example] = trees    ? tree_of_linear(target.join(ids), trees->words[example])
                       : tokens ? target.join(ids)
                                : target.decode(ids);
      }
    }
  });
  if (ranks.size() == 1) return out;

  // A rank tells the others its lines, in the order of its batches.
  const auto for_each_line = [&](std::size_t rank, auto work) {
    for (std::size_t index = rank; index < batches; index += stride)
      for (std::size_t i = index * kSentences; i < std::min(order.size(), (index + 1) * kSentences); ++i)
        work(out[static_cast<std::size_t>(order[i])]);
  };
  std::string own;
  for_each_line(first, [&](const std::string& line) { add_part(own, line); });
  const std::vector<std::string> all = ranks.gather(own);
  for (std::size_t rank = 0; rank < stride; ++rank) {
    std::string_view rest = all[rank];
    for_each_line(rank, [&](std::string& line) { line = take_part(rest); });
  }
  return out;
}

}  // namespace heed
