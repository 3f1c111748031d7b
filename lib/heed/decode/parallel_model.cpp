#include "heed/decode/parallel_model.h"

#include <cmath>
#include <map>

#include "heed/decode/step_model.h"
#include "heed/ops/linear.h"
#include "heed/ops/parts.h"
#include "heed/ops/top_k.h"

namespace heed {

void ParallelModel::predict(const MaskedBatch& batch, CpuContext& device, std::int64_t k, float* log_probabilities,
                            std::int32_t* ids) {
  log_softmax_top_k(device, scores(batch), k, log_probabilities, ids);
}

NetworkParallelModel::NetworkParallelModel(const Model<float>& model, ParameterValues<float>& parameters,
                                           Precision precision, std::shared_ptr<PackedParameters<float>> packed,
                                           std::shared_ptr<const Shortlist> shortlist)
    : model_(model),
      packed_(packed ? std::move(packed) : std::make_shared<PackedParameters<float>>(parameters)),
      device_(packed_->gpu(), precision),
      graph_(device_, packed_->view(), packed_.get()),
      state_(model.make_parallel_state(device_)),
      shortlist_(std::move(shortlist)),
      shortlist_output_(device_) {}

void NetworkParallelModel::start(const PackedIds& source) {
  graph_.device().begin();
  graph_.reset();
  state_->start(graph_, source);
  if (shortlist_)
    shortlist_output_.start(graph_, *shortlist_, source, model_.output_weight(graph_).value,
                            model_.output_bias(graph_).value);
}

/// Returns the hidden states [R, D] of the tokens to predict.
Variable<float> NetworkParallelModel::hidden(const MaskedBatch& batch) {
  graph_.reset();
  if (shortlist_) {
    std::vector<std::int32_t> sentences;
    int target = 0;
    for (const std::int32_t row : batch.rows) {
      while (row >= batch.targets.packed().begin(target + 1)) ++target;
      sentences.push_back(batch.sentences[static_cast<std::size_t>(target)]);
    }
    shortlist_output_.set_rows(sentences);
  }
  return gather_rows<float>(graph_, state_->predict(graph_, batch.targets, batch.sentences), batch.rows);
}

Tensor<float> NetworkParallelModel::scores(const MaskedBatch& batch) {
  const Variable<float> rows = hidden(batch);
  if (shortlist_) return shortlist_output_.scores(graph_, rows.value, vocabulary());
  return graph_.device().download(linear(graph_, rows, model_.output_weight(graph_), model_.output_bias(graph_)).value);
}

void NetworkParallelModel::predict(const MaskedBatch& batch, CpuContext& device, std::int64_t k,
                                   float* log_probabilities, std::int32_t* ids) {
  const Variable<float> rows = hidden(batch);
  if (shortlist_) return shortlist_output_.best(graph_, rows.value, k, log_probabilities, ids);
  output_top_k(graph_, rows.value, model_.output_weight(graph_).value, model_.output_bias(graph_).value, device, k,
               log_probabilities, ids);
}

void EnsembleParallelModel::start(const PackedIds& source) {
  for (auto& model : models_) model->start(source);
}

std::vector<std::vector<TargetLength>> EnsembleParallelModel::lengths() const {
  std::vector<std::map<int, double>> mean;
  for (const auto& model : models_) {
    const auto own = model->lengths();
    mean.resize(own.size());
    for (std::size_t s = 0; s < own.size(); ++s)
      for (const TargetLength& length : own[s])
        mean[s][length.tokens] +=
            std::exp(static_cast<double>(length.log_probability)) / static_cast<double>(models_.size());
  }
  std::vector<std::vector<TargetLength>> out(mean.size());
  for (std::size_t s = 0; s < mean.size(); ++s)
    for (const auto& [tokens, p] : mean[s]) out[s].push_back({tokens, static_cast<float>(std::log(p))});
  return out;
}

Tensor<float> EnsembleParallelModel::scores(const MaskedBatch& batch) {
  const auto rows = std::ssize(batch.rows);
  mean_.assign(batch.rows.size() * static_cast<std::size_t>(vocabulary()), 0);
  for (auto& model : models_) add_probabilities(model->scores(batch), 1 / static_cast<float>(models_.size()), mean_);
  for (float& p : mean_) p = std::log(p);
  return {mean_.data(), {rows, vocabulary()}};
}

void EnsembleParallelModel::share_with(ThreadTeam* team) {
  for (auto& model : models_) model->share_with(team);
}

}  // namespace heed
