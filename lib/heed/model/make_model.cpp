#include "heed/model/make_model.h"

#include "heed/model/parallel_transformer.h"
#include "heed/model/rnn.h"
#include "heed/model/swin.h"
#include "heed/model/transformer.h"
#include "heed/model/vit.h"

namespace heed {
namespace {

// One function for each architecture: a config without one does not compile.
template <class T>
std::unique_ptr<const Model<T>> make(const TransformerConfig& config) {
  if (config.is_parallel()) return std::make_unique<ParallelTransformer<T>>(config);
  return std::make_unique<Transformer<T>>(config);
}

template <class T>
std::unique_ptr<const Model<T>> make(const RnnConfig& config) {
  return std::make_unique<Rnn<T>>(config);
}
template <class T>
std::unique_ptr<const Model<T>> make(const RnnAttentionConfig& config) {
  return std::make_unique<RnnAttention<T>>(config);
}

template <class T>
std::unique_ptr<const Model<T>> make(const VitConfig& config) {
  return std::make_unique<Vit<T>>(config);
}
template <class T>
std::unique_ptr<const Model<T>> make(const VitCaptionConfig& config) {
  return std::make_unique<VitCaption<T>>(config);
}
template <class T>
std::unique_ptr<const Model<T>> make(const SwinConfig& config) {
  return std::make_unique<Swin<T>>(config);
}

}  // namespace

template <class T>
std::unique_ptr<const Model<T>> make_model(const ModelConfig& config) {
  return std::visit([](const auto& c) { return make<T>(c); }, config);
}

template std::unique_ptr<const Model<float>> make_model(const ModelConfig&);
template std::unique_ptr<const Model<double>> make_model(const ModelConfig&);

}  // namespace heed
