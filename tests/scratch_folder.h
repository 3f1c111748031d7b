#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace heed {

/// A new empty folder for the files of a test. The destructor removes it.
class ScratchFolder {
 public:
  ScratchFolder() { std::filesystem::create_directory(path_); }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ / name; }
  /// Writes a file, and returns its path.
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  static int next_number() {
    static int number = 0;
    return number++;
  }

  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("heed_test_" + std::to_string(::getpid()) + "_" + std::to_string(next_number()));
};

}  // namespace heed
