#pragma once

#include <atomic>
#include <string>

namespace heed {

/// Owns the path of a temporary file. The destructor removes the file, and so does remove_temporary_files(). The file
/// need not exist.
class TemporaryName {
 public:
  explicit TemporaryName(std::string path);
  ~TemporaryName();
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  const std::string& path() const { return path_; }
  /// Makes this object forget its file, so that the file will not be removed: the caller keeps the file, or has renamed
  /// it.
  void release();

 private:
  struct Entry;
  friend void remove_temporary_files();
  static Entry* entry_of(const std::string& path);
  static std::atomic<Entry*> first_entry;

  std::string path_;
  // This path's entry in the list of the temporary files that signal handlers remove; nullptr after release().
  Entry* entry_;
};

/// Returns the folder for temporary files that belong to no other file: that of the environment variable TMPDIR, or
/// else /var/tmp, which is on disk rather than in memory.
std::string temporary_folder();

/// Removes the files of all TemporaryName objects that exist. Signal handlers that end the process call this function.
void remove_temporary_files();

/// Returns whether `path` still names the file that is open as `fd`.
bool same_file(int fd, const std::string& path);

}  // namespace heed
