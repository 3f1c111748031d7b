#include "heed/model/image_classifier.h"

#include "heed/base/error.h"
#include "heed/tensor/device_memory.h"

namespace heed {
namespace {

/// The state of a batch of images: their features, and which image each row is.
template <class T>
class ClassifierState : public DecoderState<T> {
 public:
  ClassifierState(const ImageClassifier<T>& model, Device device) : model_(model), arena_(device.arena().source()) {}

  void start(Graph<T>& graph, const PackedIds& source) override {
    const InferenceScope scope(graph);
    const Tensor<T> found = model_.features(graph, source).value;
    arena_.reset();
    features_ = copy_in(arena_, graph.device(), found);
  }
  Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens) override {
    if (std::ssize(tokens) != features_.rows()) throw Error("internal: a class for each image is one step");
    return graph.input(features_);
  }
  void select(std::span<const std::int32_t>) override { fail(); }
  Variable<T> step_chains(Graph<T>&, std::span<const std::int32_t>, std::span<const std::int32_t>) override { fail(); }
  void truncate(std::span<const std::int32_t>) override { fail(); }

 private:
  [[noreturn]] static void fail() { throw Error("internal: a class is no sequence"); }

  const ImageClassifier<T>& model_;
  Arena arena_;         // in the memory of the device
  Tensor<T> features_;  // [images, D], in the memory of arena_
};

}  // namespace

template <class T>
std::unique_ptr<DecoderState<T>> ImageClassifier<T>::make_state(Device device) const {
  return std::make_unique<ClassifierState<T>>(*this, device);
}

template <class T>
void ImageClassifier<T>::add_output(std::int64_t width) {
  const std::int64_t classes = vocabulary_sizes(this->config_).target_vocabulary - kReservedIds;
  if (classes < 1) throw UsageError("the target vocabulary has no labels");
  this->output_weight_ = this->layout_.add("output/weight", {classes, width}, Initialiser::xavier());
  this->output_bias_ = this->layout_.add("output/bias", {classes}, Initialiser::zeros());
}

template class ImageClassifier<float>;
template class ImageClassifier<double>;

}  // namespace heed
