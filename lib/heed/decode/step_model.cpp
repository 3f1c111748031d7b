#include "heed/decode/step_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "heed/decode/output_on_gpu.h"
#include "heed/ops/packed_linear.h"
#include "heed/ops/top_k.h"

namespace heed {

void StepModel::step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k, float* log_probabilities,
                     std::int32_t* ids) {
  log_softmax_top_k(device, step(tokens), k, log_probabilities, ids);
}

float largest_score(std::span<const float> scores) {
  // Many maxima at once: the compiler turns the inner loop into vector instructions, which need not wait for each
  // other.
  constexpr std::size_t kMaxima = 16;
  std::array<float, kMaxima> maxima;
  maxima.fill(scores[0]);
  std::size_t v = 0;
  for (; v + kMaxima <= scores.size(); v += kMaxima)
    for (std::size_t i = 0; i < kMaxima; ++i) maxima[i] = std::max(maxima[i], scores[v + i]);
  for (; v < scores.size(); ++v) maxima[0] = std::max(maxima[0], scores[v]);
  return *std::max_element(maxima.begin(), maxima.end());
}

float log_sum_exp(std::span<const float> scores) {
  const float top = largest_score(scores);
  if (std::isinf(top)) return top;
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - top);
  return top + static_cast<float>(std::log(sum));
}

Tensor<float> log_normalizers(CpuContext& device, Tensor<float> scores) {
  const Tensor<float> out = device.arena.tensor<float>({scores.rows()});
  const Tensor<std::int32_t> best = device.arena.tensor<std::int32_t>({scores.rows()});
  log_softmax_top_k(device, scores, 1, out.data(), best.data());
  for (std::int64_t r = 0; r < scores.rows(); ++r) out.data()[r] = scores.row(r)[best.data()[r]] - out.data()[r];
  return out;
}

NetworkStepModel::NetworkStepModel(const Model<float>& model, ParameterValues<float>& parameters, Precision precision,
                                   std::shared_ptr<PackedParameters<float>> packed,
                                   std::shared_ptr<const Shortlist> shortlist)
    : model_(model),
      packed_(packed ? std::move(packed) : std::make_shared<PackedParameters<float>>(parameters)),
      device_(packed_->gpu(), precision),
      graph_(device_, packed_->view(), packed_.get()),
      state_(model.make_state(device_)),
      shortlist_(std::move(shortlist)),
      shortlist_output_(device_) {}

void NetworkStepModel::start(const PackedIds& source) {
  graph_.device().begin();
  graph_.reset();
  state_->start(graph_, source);
  if (shortlist_)
    shortlist_output_.start(graph_, *shortlist_, source, model_.output_weight(graph_).value,
                            model_.output_bias(graph_).value);
}

void NetworkStepModel::reorder(std::span<const std::int32_t> parents) {
  state_->select(parents);
  if (shortlist_) shortlist_output_.select(parents);
}

Tensor<float> NetworkStepModel::step(std::span<const std::int32_t> tokens) {
  graph_.reset();
  Tensor<float> scores;
  graph_.device().step(std::ssize(tokens), [&] {
    const Variable<float> hidden = state_->step(graph_, tokens);
    scores = shortlist_ ? shortlist_output_.scores(graph_, hidden.value, vocabulary())
                        : graph_.device().download(
                              linear(graph_, hidden, model_.output_weight(graph_), model_.output_bias(graph_)).value);
  });
  return scores;
}

void NetworkStepModel::step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k,
                            float* log_probabilities, std::int32_t* ids) {
  graph_.reset();
  graph_.device().step(std::ssize(tokens),
                       [&] { best(state_->step(graph_, tokens).value, device, k, log_probabilities, ids); });
}

void NetworkStepModel::step_chains(std::span<const std::int32_t> tokens, std::span<const std::int32_t> counts,
                                   CpuContext& device, std::int64_t k, float* log_probabilities, std::int32_t* ids) {
  graph_.reset();
  if (shortlist_) {
    std::vector<std::int32_t> parents;
    for (std::size_t r = 0; r < counts.size(); ++r)
      parents.insert(parents.end(), static_cast<std::size_t>(counts[r]), static_cast<std::int32_t>(r));
    shortlist_output_.select(parents);
  }
  best(state_->step_chains(graph_, tokens, counts).value, device, k, log_probabilities, ids);
}

/// Computes the output layer from the decoder's output `hidden` [R, D] for R rows and model width D, and returns the k
/// likeliest next tokens of each row in the format of step().
void NetworkStepModel::best(Tensor<float> hidden, CpuContext& device, std::int64_t k, float* log_probabilities,
                            std::int32_t* ids) {
  if (shortlist_) return shortlist_output_.best(graph_, hidden, k, log_probabilities, ids);
  output_top_k(graph_, hidden, model_.output_weight(graph_).value, model_.output_bias(graph_).value, device, k,
               log_probabilities, ids);
}

void output_top_k(Graph<float>& graph, Tensor<float> hidden, Tensor<float> weight, Tensor<float> bias, CpuContext& host,
                  std::int64_t k, float* log_probabilities, std::int32_t* ids) {
  if (!graph.device().is_host()) return output_top_k_on_gpu(graph, hidden, weight, bias, k, log_probabilities, ids);
  CpuContext& cpu = graph.device().cpu();
  Arena& arena = cpu.arena;
  const std::int64_t rows = hidden.rows(), all = weight.rows();
  const LinearInput<float> product(cpu, graph.packed(), hidden);
  const PackedWeight<float> packed = product.packed_weight(weight, bias);
  std::vector<std::int64_t> left;  // the rows whose best tokens have not been found
  if (k <= LogSoftmaxTopK<float>::kLargest) {
    // One thread computes the scores of a block of vocabulary columns, which stay in its cache until best.add() reads
    // them. Such a block is too small for a team of threads to share, so a team computes all columns in one product.
    const std::int64_t block = cpu.team ? all : LogSoftmaxTopK<float>::kColumns;
    LogSoftmaxTopK<float> best(arena, rows, k, log_probabilities, ids);
    for (std::int64_t begin = 0; begin < all; begin += block) {
      const ArenaScope scope(arena);
      const std::int64_t end = std::min(all, begin + block);
      const Tensor<float> scores = arena.tensor<float>({rows, end - begin});
      product.multiply(packed, begin, end, scores);
      best.add(scores, begin);
    }
    left = best.finish();
    if (left.empty()) return;
  } else {
    left.resize(static_cast<std::size_t>(rows));
    std::iota(left.begin(), left.end(), std::int64_t{0});
  }
  const Tensor<float> scores = arena.tensor<float>({rows, all});
  product.multiply(packed, scores);
  for (const std::int64_t r : left)
    log_softmax_top_k(host, Tensor<float>(scores.row(r), {1, all}), k, log_probabilities + r * k, ids + r * k);
}

void EnsembleStepModel::start(const PackedIds& source) {
  for (auto& model : models_) model->start(source);
}

void add_probabilities(Tensor<float> scores, float share, std::span<float> sum) {
  for (std::int64_t r = 0; r < scores.rows(); ++r) {
    const std::span<const float> row(scores.row(r), static_cast<std::size_t>(scores.columns()));
    const float total = log_sum_exp(row);
    float* const out = sum.data() + r * scores.columns();
    for (std::size_t v = 0; v < row.size(); ++v) out[v] += share * std::exp(row[v] - total);
  }
}

Tensor<float> EnsembleStepModel::step(std::span<const std::int32_t> tokens) {
  const auto size = tokens.size() * static_cast<std::size_t>(vocabulary());
  mean_.assign(size, 0);
  const float share = 1 / static_cast<float>(models_.size());
  for (auto& model : models_) {
    add_probabilities(model->step(tokens), share, mean_);
  }
  for (float& p : mean_) p = std::log(p);
  return {mean_.data(), {static_cast<std::int64_t>(tokens.size()), vocabulary()}};
}

void EnsembleStepModel::reorder(std::span<const std::int32_t> parents) {
  for (auto& model : models_) model->reorder(parents);
}

void EnsembleStepModel::share_with(ThreadTeam* team) {
  for (auto& model : models_) model->share_with(team);
}

}  // namespace heed
