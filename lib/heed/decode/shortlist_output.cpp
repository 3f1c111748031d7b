#include "heed/decode/shortlist_output.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "heed/decode/output_on_gpu.h"
#include "heed/tensor/device_memory.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

/// The number of neighbouring sentences whose output scores are computed in one matrix product. A larger group packs
/// columns that its sentences share fewer times, but multiplies each row by the columns of more sentences.
constexpr std::size_t kGroup = 8;
constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

void ShortlistOutput::start(Graph<float>& graph, const Shortlist& shortlist, const PackedIds& source,
                            Tensor<float> weight, Tensor<float> bias) {
  weights_.reset();
  groups_.clear();
  sentences_.resize(static_cast<std::size_t>(source.sequences()));
  rows_.resize(sentences_.size());
  std::iota(rows_.begin(), rows_.end(), 0);
  for (std::size_t s = 0; s < sentences_.size(); ++s)
    shortlist.targets_of(source.sequence(static_cast<int>(s)), sentences_[s].ids);
  weight_ = weight;
  bias_ = bias;
  if (!device_.is_host()) return start_on_gpu(weight.rows());
  std::vector<std::int32_t> all, merged, place(static_cast<std::size_t>(weight.rows()));
  for (std::size_t begin = 0; begin < sentences_.size(); begin += kGroup) {
    const std::size_t end = std::min(sentences_.size(), begin + kGroup);
    all.clear();
    for (std::size_t s = begin; s < end; ++s) {
      Sentence& sentence = sentences_[s];
      sentence.group = static_cast<std::int32_t>(groups_.size());
      merged.clear();
      std::set_union(all.begin(), all.end(), sentence.ids.begin(), sentence.ids.end(), std::back_inserter(merged));
      std::swap(all, merged);
    }
    for (std::size_t i = 0; i < all.size(); ++i) place[static_cast<std::size_t>(all[i])] = static_cast<std::int32_t>(i);
    for (std::size_t s = begin; s < end; ++s) {
      sentences_[s].columns.clear();
      for (const std::int32_t id : sentences_[s].ids)
        sentences_[s].columns.push_back(place[static_cast<std::size_t>(id)]);
    }
    groups_.push_back({PackedWeight<float>::pack(graph.device().cpu(), graph.packed(), weight, bias, all, weights_),
                       end - begin == 1});
  }
}

/// Copies the sets of columns that the sentences may use to the device.
void ShortlistOutput::start_on_gpu(std::int64_t vocabulary) {
  sets_.stride = (vocabulary + 31) / 32;
  const auto stride = static_cast<std::size_t>(sets_.stride);
  std::vector<std::uint32_t> bits(sentences_.size() * stride);
  for (std::size_t s = 0; s < sentences_.size(); ++s)
    for (const std::int32_t id : sentences_[s].ids)
      bits[s * stride + static_cast<std::size_t>(id / 32)] |= 1U << (id % 32);
  sets_.bits = put_in<std::uint32_t>(weights_, device_, bits).data();
}

/// Sets the scores [R, V] of pieces that the shortlist does not allow to minus infinity, on a GPU. The first row of
/// `scores` is row number `first`.
void ShortlistOutput::take_away_columns(Tensor<float> scores, std::int64_t first) const {
  const std::span<const std::int32_t> sentences =
      device_.upload(Tensor<const std::int32_t>(rows_.data() + first, {scores.rows()})).span();
  device_.run([&](auto& device) { mask_columns(device, scores, sets_, sentences); });
}

void ShortlistOutput::select(std::span<const std::int32_t> parents) {
  std::vector<std::int32_t> rows;
  rows.reserve(parents.size());
  for (const std::int32_t parent : parents) rows.push_back(rows_[static_cast<std::size_t>(parent)]);
  rows_ = std::move(rows);
}

template <class Use>
void ShortlistOutput::for_sentences(Graph<float>& graph, Tensor<float> hidden, Use use) {
  const auto group_of = [&](std::size_t row) { return sentences_[static_cast<std::size_t>(rows_[row])].group; };
  for (std::size_t first = 0, last = 0; first < rows_.size(); first = last) {
    while (last < rows_.size() && group_of(last) == group_of(first)) ++last;
    const ArenaScope scope(graph.arena());
    const Group& group = groups_[static_cast<std::size_t>(group_of(first))];
    const auto row = static_cast<std::int64_t>(first), count = static_cast<std::int64_t>(last - first);
    const Tensor<float> scores = graph.arena().tensor<float>({count, group.weight.n});
    LinearInput<float>(graph.device().cpu(), graph.packed(), {hidden.row(row), {count, hidden.columns()}})
        .multiply(group.weight, scores);
    for (std::size_t begin = first, end = first; begin < last; begin = end) {
      while (end < last && rows_[end] == rows_[begin]) ++end;
      const ArenaScope inner(graph.arena());
      const Sentence& sentence = sentences_[static_cast<std::size_t>(rows_[begin])];
      const auto n = static_cast<std::int64_t>(end - begin);
      const auto columns = std::ssize(sentence.columns);
      const auto at = static_cast<std::int64_t>(begin - first);
      Tensor<float> own(scores.row(at), {n, columns});
      if (!group.alone) {
        own = graph.arena().tensor<float>({n, columns});
        for (std::int64_t r = 0; r < n; ++r)
          for (std::int64_t c = 0; c < columns; ++c)
            own.row(r)[c] = scores.row(at + r)[sentence.columns[static_cast<std::size_t>(c)]];
      }
      use(sentence, static_cast<std::int64_t>(begin), own);
    }
  }
}

Tensor<float> ShortlistOutput::scores(Graph<float>& graph, Tensor<float> hidden, std::int64_t vocabulary) {
  if (!device_.is_host()) {
    const Tensor<float> whole = linear(graph, graph.input(hidden), graph.input(weight_), graph.input(bias_)).value;
    take_away_columns(whole, 0);
    return device_.download(whole);
  }
  const Tensor<float> all = graph.arena().tensor<float>({hidden.rows(), vocabulary});
  std::fill_n(all.data(), all.size(), kNever);
  for_sentences(graph, hidden, [&](const Sentence& sentence, std::int64_t first, Tensor<float> own) {
    for (std::int64_t r = 0; r < own.rows(); ++r)
      for (std::int64_t c = 0; c < own.columns(); ++c)
        all.row(first + r)[sentence.ids[static_cast<std::size_t>(c)]] = own.row(r)[c];
  });
  return all;
}

void ShortlistOutput::best(Graph<float>& graph, Tensor<float> hidden, std::int64_t k, float* log_probabilities,
                           std::int32_t* ids) {
  if (!device_.is_host()) {
    output_top_k_on_gpu(graph, hidden, weight_, bias_, k, log_probabilities, ids,
                        [&](Tensor<float> scores, std::int64_t first) { take_away_columns(scores, first); });
    for (std::int64_t i = 0; i < hidden.rows() * k; ++i)
      if (log_probabilities[i] == kNever) ids[i] = kPadId;
    return;
  }
  CpuContext& cpu = graph.device().cpu();
  Arena& arena = cpu.arena;
  for_sentences(graph, hidden, [&](const Sentence& sentence, std::int64_t first, Tensor<float> own) {
    const std::int64_t kept = std::min(k, own.columns());
    const Tensor<float> values = arena.tensor<float>({own.rows(), kept});
    const Tensor<std::int32_t> places = arena.tensor<std::int32_t>({own.rows(), kept});
    if (kept <= LogSoftmaxTopK<float>::kLargest) {
      LogSoftmaxTopK<float> best(arena, own.rows(), kept, values.data(), places.data());
      best.add(own, 0);
      for (const std::int64_t r : best.finish())
        log_softmax_top_k(cpu, Tensor<float>(own.row(r), {1, own.columns()}), kept, values.row(r), places.row(r));
    } else {
      log_softmax_top_k(cpu, own, kept, values.data(), places.data());
    }
    for (std::int64_t r = 0; r < own.rows(); ++r)
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t at = (first + r) * k + i;
        log_probabilities[at] = i < kept ? values.row(r)[i] : kNever;
        ids[at] = i < kept ? sentence.ids[static_cast<std::size_t>(places.row(r)[i])] : kPadId;
      }
  });
}

}  // namespace heed
