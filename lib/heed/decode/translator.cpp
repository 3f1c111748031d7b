#include "heed/decode/translator.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/thread_team.h"

namespace heed {
namespace {

/// Keeps the cross-attention weights of the last layer, averaged over heads.
class LastCrossAttention : public Trace<float> {
 public:
  explicit LastCrossAttention(const Model<float>& model) : layer_(last_cross_attention(model)) {}

  bool wants(AttentionKind kind, int layer) const override { return kind == AttentionKind::cross && layer == layer_; }
  void attention(AttentionKind, int, int heads, PackedOffsets queries, PackedOffsets keys,
                 const Variable<float>& variable) override {
    const float* weights = variable.value.data();
    maps_.assign(static_cast<std::size_t>(queries.sequences()), {});
    for (int b = 0; b < queries.sequences(); ++b) {
      const auto size = static_cast<std::size_t>(queries.length(b)) * static_cast<std::size_t>(keys.length(b));
      auto& map = maps_[static_cast<std::size_t>(b)];
      map.assign(size, 0);
      for (int h = 0; h < heads; ++h, weights += size)
        for (std::size_t i = 0; i < size; ++i) map[i] += weights[i] / static_cast<float>(heads);
    }
  }

  std::vector<std::vector<float>> take() { return std::move(maps_); }

 private:
  int layer_;
  std::vector<std::vector<float>> maps_;
};

/// Throws Error if the vocabularies or text steps of the checkpoints `first` and `other` differ, whose paths are given,
/// too. `rule` says what the user should do.
void check_same_texts(const std::string& first_path, const Checkpoint& first, const std::string& other_path,
                      const Checkpoint& other, const char* rule) {
  const auto check = [&](const char* side, const TextModelParts& x, const TextModelParts& y) {
    if (x.pieces != y.pieces || x.subword_model != y.subword_model || x.attributes != y.attributes)
      throw Error(Position{other_path}, std::string("its ") + side + " vocabulary or text steps differ from those of " +
                                            first_path + " (" + rule + ")");
  };
  check("source", first.source.parts(), other.source.parts());
  check("target", first.target.parts(), other.target.parts());
}

/// Returns the smaller of two greatest lengths, of which nothing means that there is no limit.
std::optional<int> smaller(std::optional<int> a, std::optional<int> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

Translator::Translator(const TranslatorFiles& files, Precision precision, int threads, std::optional<int> gpu)
    : precision_(precision), gpu_(gpu) {
  // A wrong value of the environment variable HEED_ISA is reported by this call, before any model is read.
  static_cast<void>(instruction_set());
  ThreadTeam team(std::min(threads, ThreadTeam::kMostUseful));
  for (const std::string& path : files.models) {
    models_.push_back(std::make_unique<Loaded>(Loaded{open_unread_checkpoint(path)}));
    if (models_.size() > 1) {
      check_same_texts(files.models.front(), checkpoint(0), path, models_.back()->file.checkpoint,
                       "an ensemble's models must be trained with the same vocabularies");
      check_kind(path, *models_.back()->file.checkpoint.model);
    } else {
      check_files_of_images(files);
      if (!files.shortlist.empty())
        shortlist_ =
            std::make_shared<Shortlist>(Shortlist::read(files.shortlist, source().vocabulary(), target().vocabulary()));
    }
    pack(*models_.back(), team);
  }
  if (files.draft.empty()) return;
  draft_ = std::make_unique<Loaded>(Loaded{open_unread_checkpoint(files.draft)});
  check_same_texts(files.models.front(), checkpoint(0), files.draft, draft_->file.checkpoint,
                   "train the draft model with the same vocabularies");
  check_kind(files.draft, *draft_->file.checkpoint.model);
  pack(*draft_, team);
}

/// Throws UsageError if the first model reads images and `files` has a file that is for models that read text. A
/// shortlist allows target pieces for source pieces, and images have no pieces.
void Translator::check_files_of_images(const TranslatorFiles& files) const {
  if (!image_input()) return;
  for (const auto& [option, path] : {std::pair("--shortlist", files.shortlist), {"--draft-model", files.draft}})
    if (!path.empty())
      throw UsageError(std::string(option) + ": has no use with " + files.models.front() + ", which reads images" +
                       (classifies() ? " and gives labels" : ""));
}

/// Throws Error if a model does not predict a target in the way of the first model.
void Translator::check_kind(const std::string& path, const Model<float>& model) const {
  const Model<float>& first = *checkpoint(0).model;
  const auto way = [](const Model<float>& each) -> std::string {
    if (is_classifier(each.config())) return "gives labels";
    return !each.is_parallel()   ? "predicts one position after the other"
           : each.predicts_end() ? "predicts all positions at once, with a fixed length of " +
                                       std::to_string(*heed::longest_sequence(each.config()))
                                 : "predicts all positions at once";
  };
  if (way(model) != way(first))
    throw Error(Position{path}, way(model) + ", but the first model " + way(first) + " (give models of one kind)");
  const ImageInput *const images = heed::image_input(model.config()), *const others = heed::image_input(first.config());
  if ((images != nullptr) != (others != nullptr) || (images && *images != *others))
    throw Error(Position{path},
                "reads other images than the first model (models of an ensemble need the same size, "
                "channels and normalisation)");
}

/// Packs the weights of a model while reading them from the file. For this purpose, one decoding step asks for each
/// weight of the layers and of the output layer (with a shortlist, not of the output layer). Then reads the remaining
/// parameters. A weight that is used only in packed form is never held unpacked as well.
void Translator::pack(Loaded& model, ThreadTeam& team) {
  if (gpu_) return upload(model, team);
  auto& [checkpoint, reader] = model.file;
  model.packed = std::make_shared<PackedParameters<float>>(
      checkpoint.parameters, [&from = *reader](std::int64_t first, std::span<float> out) { from.read(first, out); });
  PackedIds source;
  if (const ImageInput* images = heed::image_input(checkpoint.model->config()))
    source.ids.assign(static_cast<std::size_t>(images->size) * static_cast<std::size_t>(images->size) *
                          static_cast<std::size_t>(images->channels),
                      kReservedIds);
  source.ids.push_back(kEndId);
  source.end_sequence();
  Arena arena;
  CpuContext device{arena, precision_};
  float log_probability = 0;
  std::int32_t id = 0;
  if (checkpoint.model->is_parallel()) {
    const auto all = parallel_model(model);
    all->share_with(&team);
    all->start(source);
    MaskedBatch batch{{}, {0}, {0}};
    batch.targets.append(std::vector<std::int32_t>{kStartId});
    all->predict(batch, device, 1, &log_probability, &id);
  } else {
    const auto steps = step_model(model);
    steps->share_with(&team);
    steps->start(source);
    steps->step(std::vector<std::int32_t>{kStartId}, device, 1, &log_probability, &id);
  }
  // Only the weights that the model lists as products are read in packed form alone.
  const ParameterLayout& layout = checkpoint.model->layout();
  const std::vector<Product> products = checkpoint.model->products();
  const auto is_kept = [&](const ParameterInfo& info) {
    return std::none_of(products.begin(), products.end(), [&](const Product& product) {
      const std::int64_t begin = layout[product.weight].offset;
      return begin <= info.offset && info.offset + info.shape.size() <= begin + product.size();
    });
  };
  model.packed->read_rest(checkpoint.parameters, is_kept, team);
  reader->finish();
}

/// Reads all parameters of a model from the file, and copies them to the GPU.
void Translator::upload(Loaded& model, ThreadTeam& team) const {
  auto& [checkpoint, reader] = model.file;
  PackedParameters<float> unread(
      checkpoint.parameters, [&from = *reader](std::int64_t first, std::span<float> out) { from.read(first, out); });
  unread.read_rest(
      checkpoint.parameters, [](const ParameterInfo&) { return true; }, team);
  reader->finish();
  model.packed = std::make_shared<PackedParameters<float>>(checkpoint.parameters, gpu_);
}

std::optional<int> Translator::longest_sequence() const {
  std::optional<int> longest;
  for (const auto& each : models_)
    longest = smaller(longest, heed::longest_sequence(each->file.checkpoint.model->config()));
  return longest;
}

std::unique_ptr<NetworkStepModel> Translator::step_model(Loaded& model) {
  Checkpoint& one = model.file.checkpoint;
  return std::make_unique<NetworkStepModel>(*one.model, one.parameters, precision_, model.packed, shortlist_);
}

std::unique_ptr<StepModel> Translator::step_model() {
  std::vector<std::unique_ptr<StepModel>> models;
  for (const auto& each : models_) models.push_back(step_model(*each));
  if (models.size() == 1) return std::move(models.front());
  return std::make_unique<EnsembleStepModel>(std::move(models));
}

std::unique_ptr<NetworkParallelModel> Translator::parallel_model(Loaded& model) {
  Checkpoint& one = model.file.checkpoint;
  return std::make_unique<NetworkParallelModel>(*one.model, one.parameters, precision_, model.packed, shortlist_);
}

std::unique_ptr<ParallelModel> Translator::parallel_model() {
  std::vector<std::unique_ptr<ParallelModel>> models;
  for (const auto& each : models_) models.push_back(parallel_model(*each));
  if (models.size() == 1) return std::move(models.front());
  return std::make_unique<EnsembleParallelModel>(std::move(models));
}

std::unique_ptr<SpeculativeStepModel> Translator::speculative_step_model(int length) {
  DraftLimits limits{.length = length};
  limits.longest = smaller(longest_sequence(), heed::longest_sequence(draft_->file.checkpoint.model->config()));
  return std::make_unique<SpeculativeStepModel>(step_model(*models_.front()), step_model(*draft_), limits);
}

/// Calls use(forced decoder), and returns the result. A thread takes a decoder that no other thread uses, or makes one.
template <class Use>
std::vector<std::vector<float>> Translator::with_forced_decoder(Loaded& model, Use use) {
  std::unique_ptr<ForcedDecoder> decoder;
  if (const std::lock_guard lock(mutex_); !model.idle.empty()) {
    decoder = std::move(model.idle.back());
    model.idle.pop_back();
  }
  Checkpoint& one = model.file.checkpoint;
  if (!decoder) decoder = std::make_unique<ForcedDecoder>(*one.model, one.parameters, precision_, model.packed);
  std::vector<std::vector<float>> result = use(*decoder);
  const std::lock_guard lock(mutex_);
  model.idle.push_back(std::move(decoder));
  return result;
}

std::vector<std::vector<float>> Translator::target_log_probabilities(const Batch& batch) {
  std::vector<std::vector<std::vector<float>>> all;
  for (const auto& each : models_)
    all.push_back(with_forced_decoder(*each, [&](ForcedDecoder& decoder) { return decoder.scores(batch); }));
  std::vector<std::vector<float>> mean = std::move(all.front());
  if (models_.size() == 1) return mean;
  std::vector<float> one(models_.size());
  for (std::size_t s = 0; s < mean.size(); ++s)
    for (std::size_t t = 0; t < mean[s].size(); ++t) {
      one.front() = mean[s][t];
      for (std::size_t m = 1; m < one.size(); ++m) one[m] = all[m][s][t];
      mean[s][t] = log_sum_exp(one) - std::log(static_cast<float>(one.size()));
    }
  return mean;
}

std::vector<std::vector<float>> Translator::attention(const Batch& batch) {
  LastCrossAttention trace(*checkpoint(0).model);
  return with_forced_decoder(*models_.front(), [&](ForcedDecoder& decoder) {
    decoder.attention(batch, trace);
    return trace.take();
  });
}

}  // namespace heed
