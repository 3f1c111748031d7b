#include "heed/train/kept_models.h"

#include <unistd.h>

#include <algorithm>

#include "heed/train/model_files.h"

namespace heed {

/// Returns the updates of the last `count` kept models, or of all if there are fewer.
std::vector<std::int64_t> KeptModels::last(int count) const {
  const auto& kept = state_.kept_updates;
  return {kept.end() - std::min(std::ssize(kept), static_cast<std::ptrdiff_t>(count)), kept.end()};
}

void KeptModels::forget_missing() {
  const std::vector<std::int64_t> averaged = last(options_.average_last);
  std::erase_if(state_.kept_updates, [&](std::int64_t update) {
    const std::string file = kept_model_file(path_, update);
    if (!ranks_.any(is_first() && ::access(file.c_str(), F_OK) != 0)) return false;
    if (!state_.finished && std::ranges::binary_search(averaged, update))
      log_.warn(file + ": is missing; the average of --average-last leaves it out");
    return true;
  });
  std::erase_if(state_.requested_updates,
                [&](std::int64_t update) { return !std::ranges::binary_search(state_.kept_updates, update); });
}

void KeptModels::add(const Checkpoint& checkpoint) {
  auto& kept = state_.kept_updates;
  const bool wanted = options_.keep_last > 0 || options_.average_last > 0;
  if (!wanted || (!kept.empty() && kept.back() == state_.updates)) return;
  run_on_first(ranks_, [&] { save_checkpoint(kept_model_file(path_, state_.updates), checkpoint); });
  kept.push_back(state_.updates);
}

void KeptModels::request_last() {
  if (options_.keep_last > 0) state_.requested_updates = last(options_.keep_last);
}

void KeptModels::remove_old(bool made) {
  const std::vector<std::int64_t> still_needed = last(made ? 0 : options_.average_last);
  std::vector<std::string> removed;
  std::erase_if(state_.kept_updates, [&](std::int64_t update) {
    if (std::ranges::binary_search(still_needed, update) ||
        std::ranges::binary_search(state_.requested_updates, update))
      return false;
    const std::string file = kept_model_file(path_, update);
    if (is_first() && ::unlink(file.c_str()) == 0) removed.push_back(file);
    return true;
  });
  if (removed.empty()) return;
  const std::string what = removed.size() == 1
                               ? "removed " + removed[0] + ", which is kept no longer (--keep-last, --average-last)"
                               : "removed " + removed.front() + " to " + removed.back() + ", " +
                                     format_count(std::ssize(removed)) +
                                     " models that are kept no longer (--keep-last, --average-last)";
  state_.updates == first_update_ ? log_.info(what) : log_.detail(what);
}

bool KeptModels::lack_average() const {
  const auto& kept = state_.kept_updates;
  const std::int64_t wanted = options_.average_last, averaged = state_.averaged_models;
  if (wanted == 0) return false;
  if (averaged > 0) return averaged != wanted && std::ssize(kept) >= wanted && kept.back() == state_.updates;
  if (kept.empty()) log_.info(path_ + ": no kept model is left to average (--average-last; --keep-last keeps models)");
  return !kept.empty();
}

std::vector<std::string> KeptModels::files_to_average() const {
  std::vector<std::string> out;
  for (const std::int64_t update : last(options_.average_last)) out.push_back(kept_model_file(path_, update));
  return out;
}

}  // namespace heed
