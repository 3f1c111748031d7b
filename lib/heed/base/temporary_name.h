#pragma once

#include <atomic>
#include <string>

namespace heed {

/// The name of a file that must not outlive its purpose: the file is removed with this object, and by
/// remove_temporary_files(). The file itself need not exist.
class TemporaryName {
 public:
  explicit TemporaryName(std::string path);
  ~TemporaryName();
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  const std::string& path() const { return path_; }
  /// The file stays, or has another name by now.
  void release();

 private:
  struct Entry;
  friend void remove_temporary_files();
  static Entry* entry_of(const std::string& path);
  static std::atomic<Entry*> first_entry;

  std::string path_;
  Entry* entry_;  // nullptr once released
};

/// Removes the files of all TemporaryNames that live: for signal handlers that end the process.
void remove_temporary_files();

}  // namespace heed
