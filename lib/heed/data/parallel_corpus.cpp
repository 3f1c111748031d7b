#include "heed/data/parallel_corpus.h"

#include <cstring>
#include <limits>

#include "heed/base/error.h"

namespace heed {
namespace {

template <class T>
void write(std::string& bytes, const std::vector<T>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// Appends the first `count` values of `bytes` to `values`, and removes them from `bytes`.
template <class T>
void read(std::string_view& bytes, std::int64_t count, std::vector<T>& values) {
  const std::size_t before = values.size(), size = static_cast<std::size_t>(count) * sizeof(T);
  if (bytes.size() < size) throw Error("internal: a block of sentence pairs is too short");
  values.resize(before + static_cast<std::size_t>(count));
  if (size > 0) std::memcpy(values.data() + before, bytes.data(), size);
  bytes.remove_prefix(size);
}

/// Adds `by` to the elements of `ends` from number `first` on.
void move_ends(std::vector<std::int64_t>& ends, std::size_t first, std::int64_t by) {
  for (std::size_t i = first; i < ends.size(); ++i) ends[i] += by;
}

}  // namespace

std::string ParallelCorpus::bytes() const {
  const std::vector<std::int64_t> counts = {size(), std::ssize(source_.ids), std::ssize(target_.ids),
                                            std::ssize(links_), std::ssize(link_ends_)};
  std::string out;
  write(out, counts);
  for (const Side* side : {&source_, &target_}) {
    write(out, side->ids);
    write(out, side->offsets);
  }
  write(out, links_);
  write(out, link_ends_);
  write(out, lines_);
  return out;
}

void ParallelCorpus::append(std::string_view bytes) {
  std::vector<std::int64_t> counts;
  read(bytes, 5, counts);
  const std::int64_t ids[] = {counts[1], counts[2]};
  Side* const sides[] = {&source_, &target_};
  for (int i = 0; i < 2; ++i) {
    Side& side = *sides[i];
    const std::size_t before = side.offsets.size();
    const std::int64_t ids_before = std::ssize(side.ids);
    read(bytes, ids[i], side.ids);
    side.offsets.pop_back();  // the block's first offset, 0, takes its place
    read(bytes, counts[0] + 1, side.offsets);
    move_ends(side.offsets, before - 1, ids_before);
  }
  const std::size_t before = link_ends_.size();
  const std::int64_t links_before = std::ssize(links_);
  read(bytes, counts[3], links_);
  read(bytes, counts[4], link_ends_);
  move_ends(link_ends_, before, links_before);
  read(bytes, counts[0], lines_);
}

void ParallelCorpus::clear() {
  for (Side* side : {&source_, &target_}) {
    side->ids.clear();
    side->offsets.resize(1);
  }
  links_.clear();
  link_ends_.clear();
  lines_.clear();
}

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
