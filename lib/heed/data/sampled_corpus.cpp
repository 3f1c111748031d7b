#include "heed/data/sampled_corpus.h"

#include <algorithm>

#include "heed/base/random.h"
#include "heed/data/word_alignment.h"
#include "heed/text/bpe/bpe.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

bool has_unknown(std::span<const std::int32_t> ids) {
  return std::ranges::find(ids, kUnknownId) != ids.end();
}

/// Returns the index of the last word of a sentence, or -1 if the sentence has no pieces.
int last_word(const TextModel& model, std::span<const std::int32_t> ids) {
  return ids.empty() ? -1 : model.words_of(ids).back();
}

}  // namespace

const ParallelCorpus& SampledCorpus::load(std::int64_t epoch, std::int64_t window) {
  const ParallelCorpus& pairs = corpus_.load(epoch, window);
  std::vector<ParallelCorpus> parts(static_cast<std::size_t>(pool_.size()));
  pool_.run([&](int thread) {
    const Slice own = slice_of(pairs.size(), pool_.size(), thread);
    ParallelCorpus& part = parts[static_cast<std::size_t>(thread)];
    for (std::int64_t i = own.begin; i < own.end; ++i) add_cut_again(pairs, i, epoch, part);
  });
  present_.clear();
  for (const ParallelCorpus& part : parts) present_.append(part.bytes());
  return present_;
}

/// Adds a pair of `pairs` to `out`, with other pieces.
void SampledCorpus::add_cut_again(const ParallelCorpus& pairs, std::int64_t pair, std::int64_t epoch,
                                  ParallelCorpus& out) const {
  const std::span<const std::int32_t> source = pairs.source(pair), target = pairs.target(pair);
  const std::vector<std::int32_t> new_source = cut_again(source_, source, epoch, pairs.line(pair), false),
                                  new_target = cut_again(target_, target, epoch, pairs.line(pair), true);
  out.add(new_source, new_target, pairs.line(pair));
  if (!pairs.aligned()) return;
  out.add_links(links_of_new_pieces(pairs.links(pair), source_.words_of(source), target_.words_of(target),
                                    source_.words_of(new_source), target_.words_of(new_target)));
}

std::vector<std::int32_t> SampledCorpus::cut_again(const TextModel& model, std::span<const std::int32_t> ids,
                                                   std::int64_t epoch, std::int64_t line, bool is_target) const {
  const std::vector<std::int32_t> usual(ids.begin(), ids.end());
  if (has_unknown(usual)) return usual;
  const std::string tokens = model.join(usual);
  if (model.encode_tokens(tokens) != usual) return usual;
  // Lines are below 2^31.
  const std::uint64_t which = static_cast<std::uint64_t>(epoch) << 32 | static_cast<std::uint64_t>(line);
  SubwordSampler sampler{.dropout = sampling_.dropout,
                         .alpha = sampling_.alpha,
                         .stream = RandomStream(sampling_.seed, RandomUse::subwords, which, is_target ? 2 : 1)};
  std::vector<std::int32_t> drawn = model.encode_tokens(tokens, &sampler);
  if (std::ssize(drawn) >= sampling_.max_length || has_unknown(drawn) ||
      last_word(model, drawn) != last_word(model, usual))
    return usual;
  return drawn;
}

}  // namespace heed
