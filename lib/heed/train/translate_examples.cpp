#include "heed/train/translate_examples.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "heed/decode/search.h"

namespace heed {
namespace {

/// The number of sentences in a batch, which one thread translates.
constexpr std::size_t kSentences = 64;

}  // namespace

std::vector<std::string> translate_examples(const Model<float>& model, ParameterValues<float>& parameters,
                                            Precision precision, const Examples& examples, const TextModel& target,
                                            bool tokens, ThreadPool& pool) {
  // Sentences are sorted by length, so that the translations of a batch end at about the same decoding step.
  std::vector<std::int32_t> order(static_cast<std::size_t>(examples.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return examples.size_of(a).source > examples.size_of(b).source;
  });

  std::vector<std::string> out(order.size());
  std::atomic<std::size_t> next = 0;
  pool.run([&](int) {
    NetworkStepModel step_model(model, parameters, precision);
    const SearchOptions options{.beam_size = 1};
    Batch batch;
    for (std::size_t begin; (begin = next.fetch_add(kSentences)) < order.size();) {
      const std::size_t end = std::min(order.size(), begin + kSentences);
      examples.fill(std::span(order).subspan(begin, end - begin), batch);
      const auto found = search(step_model, batch.source, options);
      for (std::size_t i = begin; i < end; ++i) {
        if (found[i - begin].empty()) continue;
        const auto& ids = found[i - begin].front().ids;
        out[static_cast<std::size_t>(order[i])] = tokens ? target.join(ids) : target.decode(ids);
      }
    }
  });
  return out;
}

}  // namespace heed
