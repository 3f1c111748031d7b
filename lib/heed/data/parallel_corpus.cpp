#include "heed/data/parallel_corpus.h"

#include <limits>

#include "heed/base/error.h"

namespace heed {

void ParallelCorpus::add(std::span<const std::int32_t> source, std::span<const std::int32_t> target,
                         std::int64_t line) {
  if (line > std::numeric_limits<std::int32_t>::max()) throw Error("the corpus has more than 2^31 lines (split it)");
  const auto append = [](Side& side, std::span<const std::int32_t> ids) {
    side.ids.insert(side.ids.end(), ids.begin(), ids.end());
    side.offsets.push_back(static_cast<std::int64_t>(side.ids.size()));
  };
  append(source_, source);
  append(target_, target);
  lines_.push_back(static_cast<std::int32_t>(line));
}

void ParallelCorpus::add_links(std::span<const PieceLink> links) {
  const auto source_pieces = std::ssize(source(size() - 1)), target_pieces = std::ssize(target(size() - 1));
  for (const PieceLink& link : links)
    if (link.source < source_pieces && link.target < target_pieces) links_.push_back(link);
  link_ends_.push_back(std::ssize(links_));
}

std::span<const PieceLink> ParallelCorpus::links(std::int64_t pair) const {
  if (link_ends_.empty()) return {};
  const std::int64_t begin = pair == 0 ? 0 : link_ends_[static_cast<std::size_t>(pair) - 1];
  return std::span(links_).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(link_ends_[static_cast<std::size_t>(pair)] - begin));
}

void ParallelCorpus::fill(std::span<const std::int32_t> pairs, Batch& batch) const {
  batch.clear();
  for (const std::int32_t pair : pairs) {
    const std::span<const PieceLink> all = links(pair);
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      while (end < all.size() && all[end].target == all[begin].target) ++end;
      for (const PieceLink& link : all.subspan(begin, end - begin))
        batch.alignment.push_back({batch.sequences(), link.target, link.source, 1 / static_cast<float>(end - begin)});
    }
    batch.add(source(pair), target(pair));
  }
}

std::uint64_t ParallelCorpus::fingerprint() const {
  // The hash is FNV-1a over 64-bit numbers instead of bytes. The multiplication carries changes only to higher bits of
  // the hash. The shift therefore folds the upper half of the hash into the lower half, so that every bit of a number
  // can change all bits of the final hash.
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x100000001b3ULL;
    hash ^= hash >> 32;
  };
  for (const Side* side : {&source_, &target_}) {
    for (const std::int32_t id : side->ids) mix(static_cast<std::uint32_t>(id));
    for (const std::int64_t offset : side->offsets) mix(static_cast<std::uint64_t>(offset));
  }
  for (const PieceLink& link : links_)
    mix(static_cast<std::uint64_t>(link.source) << 32 | static_cast<std::uint32_t>(link.target));
  for (const std::int64_t end : link_ends_) mix(static_cast<std::uint64_t>(end));
  return hash;
}

std::int64_t ParallelCorpus::memory() const {
  const auto bytes = [](const auto& items) { return items.capacity() * sizeof(items[0]); };
  return static_cast<std::int64_t>(bytes(source_.ids) + bytes(source_.offsets) + bytes(target_.ids) +
                                   bytes(target_.offsets) + bytes(links_) + bytes(link_ends_) + bytes(lines_));
}

}  // namespace heed
