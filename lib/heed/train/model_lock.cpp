#include "heed/train/model_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/train/model_files.h"
#include "heed/train/trainer_options.h"

namespace heed {
namespace {

/// Returns the path with which the names of a model's temporary files begin. When `path` is a symbolic link, the
/// returned path lies beside the link's target.
std::string stem_of_model(const std::string& path) {
  return temporary_stem(target_of_output(path));
}

/// Returns the process that holds the lock, read from the lock file, as " (process 1234)". Returns "" when the process
/// has not yet written its process id into the file.
std::string owner(int fd) {
  char text[32];
  const ssize_t size = ::pread(fd, text, sizeof text, 0);
  const std::string_view read(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  const bool number = !read.empty() && read.find_first_not_of("0123456789") == std::string_view::npos;
  return number ? " (process " + std::string(read) + ")" : "";
}

/// Removes `begin` from the beginning of `text`. Returns false, and removes nothing, when `text` does not begin with
/// `begin`.
bool take(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

/// Removes the digits at the beginning of `text`. Returns false when `text` does not begin with a digit.
bool take_digits(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0;
}

/// Returns whether `name` is the name of a temporary file: `stem`, ".", a number and ".tmp".
bool is_temporary(std::string_view name, std::string_view stem) {
  return take(name, stem) && take(name, ".") && take_digits(name) && name == ".tmp";
}

}  // namespace

std::string lock_file(const std::string& model) {
  return stem_of_model(model) + ".lock";
}

ModelLock::ModelLock(const std::string& model, const std::string& option, Log& log) {
  const std::string file = lock_file(model);
  while (true) {
    fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) throw Error(Position{model}, "cannot be written: " + errno_text());
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      const std::string reason = errno_text(), process = owner(fd_);
      ::close(fd_);
      if (taken)
        throw Error(Position{model}, "another training" + process +
                                         " is writing it (wait for it, stop it, or name another model with " + option +
                                         ")");
      log.warn(file + ": cannot be locked: " + reason + " (make sure that no other training writes " + model + ")");
      fd_ = -1;
      return;
    }
    // The process that held the lock before removes the lock file before it unlocks the file. When the removal happened
    // between open() and flock(), the present process has locked a removed file, and must open the lock file again.
    if (same_file(fd_, file)) break;
    ::close(fd_);
  }
  file_.emplace(file);
  // On a full disk the lock file stays empty. Then the error message of other trainings names no process, but the model
  // is locked nevertheless.
  const std::string process = std::to_string(::getpid());
  [[maybe_unused]] const bool written =
      ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, process.data(), process.size(), 0) > 0;
}

ModelLock::~ModelLock() {
  file_.reset();  // The lock file is removed before close() unlocks it.
  if (fd_ >= 0) ::close(fd_);
}

int remove_left_temporary_files(const std::string& model) {
  namespace fs = std::filesystem;
  std::vector<fs::path> stems = {stem_of_model(model)};
  for (const std::string_view name : kValidationMetrics)
    stems.push_back(stem_of_model(model_file_variant(model, "best-" + std::string(name))));
  // The common beginning of the names of the temporary files of all models that --keep-last keeps, without the number
  // of the update: "folder/.model.update-".
  const fs::path kept = fs::path(stem_of_model(model_file_variant(model, "update-"))).replace_extension();
  const auto is_left = [&](const fs::path& path) {
    const std::string name = path.filename();
    std::string_view rest = name;
    if (take(rest, kept.filename().native()) && take_digits(rest) && is_temporary(rest, ".h5"))
      return path.parent_path() == kept.parent_path();
    return std::any_of(stems.begin(), stems.end(), [&](const fs::path& stem) {
      return is_temporary(name, stem.filename().native()) && path.parent_path() == stem.parent_path();
    });
  };
  // When the model is given as a symbolic link, its temporary files are in the folder of the link's target.
  std::vector<fs::path> folders = {stems[0].parent_path(), kept.parent_path()};
  if (folders[0] == folders[1]) folders.pop_back();
  int removed = 0;
  for (const fs::path& folder : folders) {
    // A temporary file that cannot be removed does not prevent training, so that errors are ignored.
    std::error_code ignored;
    std::vector<fs::path> left;
    for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored))
      if (is_left(entry->path())) left.push_back(entry->path());
    for (const fs::path& path : left) removed += fs::remove(path, ignored) ? 1 : 0;
  }
  return removed;
}

}  // namespace heed
