#pragma once

#include <optional>
#include <string>

#include "heed/base/log.h"
#include "heed/base/temporary_name.h"

namespace heed {

/// Returns the path of the lock file of `model`: "folder/.model.h5.lock". When `model` is a symbolic link, the lock
/// file lies beside the link's target. Throws Error when `model` is no regular file.
std::string lock_file(const std::string& model);

/// Keeps other processes from training the same model while the ModelLock exists: two trainings would overwrite each
/// other's checkpoints. The lock is a lock by flock(2) on the file `.MODEL.h5.lock` in the model's folder. The kernel
/// releases the lock when the process ends, even by `kill -9`; a lock file that such a process leaves behind is not
/// locked. On a file system without flock, the constructor warns and locks nothing.
class ModelLock {
 public:
  /// Locks `model`. The error message for a locked model advises the user to name another model with the command-line
  /// option `option`. Throws Error when another process has the lock, or when the lock file cannot be created.
  ModelLock(const std::string& model, const std::string& option, Log& log);
  ~ModelLock();
  /// Returns whether the model is locked; false on a file system without flock.
  bool held() const { return fd_ >= 0; }
  ModelLock(const ModelLock&) = delete;
  ModelLock& operator=(const ModelLock&) = delete;

 private:
  int fd_ = -1;
  // The path of the lock file, set when this process has locked the file. The destructor removes the file.
  std::optional<TemporaryName> file_;
};

/// Removes the temporary files that killed training processes left behind, both of `model` and of the models kept
/// beside it (--keep-best, --keep-last). Returns the number of files removed. The caller must hold the model's
/// ModelLock, because the temporary files of a running training have the same names.
int remove_left_temporary_files(const std::string& model);

}  // namespace heed
