#pragma once

#include <optional>
#include <string>

#include "heed/base/log.h"
#include "heed/base/temporary_name.h"

namespace heed {

/// While it lives, no other process writes the same model with train: two trainings would overwrite each other's
/// checkpoints. It is a lock (flock) on the file `.MODEL.h5.lock` beside the model. The kernel releases the lock when
/// the process ends, however it ends; the file is a TemporaryName, and one that `kill -9` leaves locks nothing. Where
/// the file system has no such locks, it warns and locks nothing.
class ModelLock {
 public:
  /// `option` is the one that names another model, for the message. Throws Error where another process has the lock.
  ModelLock(const std::string& model, const std::string& option, Log& log);
  ~ModelLock();
  /// False where the file system has no locks.
  bool held() const { return fd_ >= 0; }
  ModelLock(const ModelLock&) = delete;
  ModelLock& operator=(const ModelLock&) = delete;

 private:
  int fd_ = -1;
  std::optional<TemporaryName> file_;  // once it is locked
};

/// Removes the temporary files that killed trainings left of a model and of the models kept beside it (--keep-best,
/// --keep-last). To be called under the model's lock: another training's temporary files look the same. Returns their
/// number.
int remove_left_temporary_files(const std::string& model);

}  // namespace heed
