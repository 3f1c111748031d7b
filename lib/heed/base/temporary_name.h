#pragma once

#include <atomic>
#include <string>

namespace heed {

/// Owns the name of a temporary file. The destructor removes the file, and so does remove_temporary_files(). The file
/// itself need not exist.
class TemporaryName {
 public:
  explicit TemporaryName(std::string path);
  ~TemporaryName();
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  const std::string& path() const { return path_; }
  /// Gives up the name, so that the file is not removed: the caller keeps the file, or has renamed it.
  void release();

 private:
  struct Entry;
  friend void remove_temporary_files();
  static Entry* entry_of(const std::string& path);
  static std::atomic<Entry*> first_entry;

  std::string path_;
  // nullptr after release().
  Entry* entry_;
};

/// Removes the files of all TemporaryName objects that exist. Signal handlers that end the process call this function.
void remove_temporary_files();

}  // namespace heed
