#include "heed/train/teachers.h"

#include "heed/train/resume.h"

namespace heed {
namespace {

/// Returns why a model cannot teach a student, or an empty string.
std::string describe_obstacle(const Checkpoint& student, const Checkpoint& teacher, int longest) {
  if (std::string difference = describe_text_difference(student, teacher); !difference.empty()) return difference;
  const ModelConfig &ours = student.model->config(), &theirs = teacher.model->config();
  const ImageInput *const images = image_input(ours), *const their_images = image_input(theirs);
  if (images && their_images && !(*images == *their_images))
    return "it reads " + their_images->describe() + ", the model to be trained " + images->describe() +
           ", or the two prepare them in another way";
  if (is_parallel(ours) != is_parallel(theirs))
    return std::string("it predicts ") +
           (is_parallel(theirs) ? "all positions at once" : "one position after the other") +
           ", the model to be trained does not";
  if (is_parallel(ours) && student.model->predicts_end() != teacher.model->predicts_end())
    return std::string("its targets ") +
           (teacher.model->predicts_end() ? "have a fixed length" : "have a length that it predicts") +
           ", those of the model to be trained do not (see --fixed-length)";
  if (const auto most = longest_sequence(theirs); most && *most < longest)
    return "it reads no more than " + std::to_string(*most) + " tokens (give --max-length " + std::to_string(*most) +
           ")";
  return {};
}

}  // namespace

Teachers::Teachers(const std::vector<std::string>& paths, const Checkpoint& student, int longest,
                   std::optional<int> gpu) {
  for (const std::string& path : paths) {
    Teacher& teacher = models_.emplace_back(path);
    const std::string obstacle = describe_obstacle(student, teacher.checkpoint, longest);
    if (!obstacle.empty()) throw Error(Position{path}, "cannot be a teacher: " + obstacle);
    teacher.parameters.emplace(teacher.checkpoint.parameters, gpu);
  }
}

BatchLoss Teachers::loss_of(const Model<float>& student, double share) {
  return [this, &student, share](Graph<float>& graph, const Batch& batch, const LossOptions& options,
                                 PendingSums* sums) {
    if (!graph.recording()) return student.loss(graph, batch, options, sums);
    const std::span<TeacherStates<float>> states(
        static_cast<TeacherStates<float>*>(graph.host_arena().allocate(models_.size() * sizeof(TeacherStates<float>))),
        models_.size());
    for (std::size_t i = 0; i < models_.size(); ++i) {
      Teacher& teacher = models_[i];
      // A training on a GPU also computes on the CPU, where it measures how fast the CPU would be.
      const bool elsewhere = graph.device().is_host() && teacher.parameters->gpu();
      Graph<float> reading(graph.device(),
                           elsewhere ? ParameterView<float>(teacher.checkpoint.parameters) : teacher.parameters->view(),
                           elsewhere ? nullptr : &*teacher.parameters);
      // A model that predicts all positions at once draws the positions by these numbers: the teacher's are the same.
      reading.set_dropout(graph.dropout_key(), graph.first_sequence());
      new (&states[i]) TeacherStates<float>(teacher.checkpoint.model->teacher_states(reading, batch));
    }
    return student.loss(graph, batch, options, sums, SoftTargets<float>{states, share});
  };
}

std::int64_t Teachers::memory() const {
  std::size_t bytes = 0;
  for (const Teacher& teacher : models_)
    bytes += teacher.checkpoint.parameters.flat().size_bytes() +
             (teacher.parameters->gpu() ? 0 : teacher.parameters->reserved());
  return static_cast<std::int64_t>(bytes);
}

}  // namespace heed
