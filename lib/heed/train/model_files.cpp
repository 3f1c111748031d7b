#include "heed/train/model_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "heed/base/streams.h"
#include "heed/train/resume.h"

namespace heed {

std::string model_file_variant(const std::string& path, const std::string& what) {
  constexpr std::string_view kExtension = ".h5";
  const bool named = path.ends_with(kExtension);
  return path.substr(0, path.size() - (named ? kExtension.size() : 0)) + "." + what + std::string(kExtension);
}

std::string kept_model_file(const std::string& path, std::int64_t update) {
  return model_file_variant(path, "update-" + std::to_string(update));
}

bool is_kept_model_file(const std::string& path, const std::string& file) {
  if (is_special(file)) return false;
  const std::string name = std::filesystem::path(target_of_output(file)).filename();
  constexpr std::string_view kMark = ".update-";
  const std::size_t mark = name.rfind(kMark);
  if (mark == std::string::npos) return false;
  std::int64_t update = -1;
  const auto [end, error] = std::from_chars(name.data() + mark + kMark.size(), name.data() + name.size(), update);
  return error == std::errc() && update >= 0 && is_same_path(file, kept_model_file(path, update));
}

Checkpoint average_checkpoints(const std::vector<std::string>& paths) {
  if (paths.empty()) throw Error("no checkpoint to average");
  Checkpoint first = load_checkpoint(paths[0]);
  std::vector<double> sum(first.parameters.flat().begin(), first.parameters.flat().end());
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const Checkpoint next = load_checkpoint(paths[i]);
    const std::string difference = describe_difference(first, next, Comparison::trained_model);
    if (!difference.empty()) throw Error(Position{paths[i]}, "cannot be averaged with " + paths[0] + ": " + difference);
    const auto values = next.parameters.flat();
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += static_cast<double>(values[j]);
  }
  const auto out = first.parameters.flat();
  for (std::size_t j = 0; j < sum.size(); ++j) out[j] = static_cast<float>(sum[j] / static_cast<double>(paths.size()));
  return first;
}

void set_first_parameters(Checkpoint& checkpoint, std::uint64_t seed, const std::string& pretrained_model) {
  if (pretrained_model.empty()) return checkpoint.parameters.initialise(seed);
  const Checkpoint trained = load_checkpoint(pretrained_model);
  const std::string difference = describe_difference(checkpoint, trained, Comparison::trained_model);
  if (!difference.empty())
    throw Error(Position{pretrained_model},
                "cannot begin this training: " + difference +
                    " (give the vocabularies and the options of the model with which it was trained)");
  std::ranges::copy(trained.parameters.flat(), checkpoint.parameters.flat().begin());
}

}  // namespace heed
