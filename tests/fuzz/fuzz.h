#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// A fuzz target is a program with a function LLVMFuzzerTestOneInput. With the preset fuzz, libFuzzer calls that
// function; otherwise driver.cpp does.

namespace heed::fuzz {

/// The bytes of a fuzzer's input. A target takes its choices from the front first, and then the text.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : bytes_(reinterpret_cast<const char*>(data), size) {}

  /// Takes a byte and returns a number below `n`; returns 0 at the end of the input.
  std::size_t choose(std::size_t n) {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte % n;
  }
  bool flip() { return choose(2) == 1; }

  /// Takes and returns the text up to the next line feed; the line feed is dropped.
  std::string line() {
    const std::size_t end = bytes_.find('\n');
    const std::string text(bytes_.substr(0, end));
    bytes_.remove_prefix(end == std::string_view::npos ? bytes_.size() : end + 1);
    return text;
  }
  std::string rest() {
    const std::string text(bytes_);
    bytes_ = {};
    return text;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

/// Ends the program unless `holds` is true, so that the fuzzer keeps the input. `what` names the property that every
/// input must have.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

/// A temporary file that contains the given text, for functions that read from a path. Several may exist at the same
/// time.
class File {
 public:
  explicit File(const std::string& text)
      : path_("/tmp/heed-fuzz-" + std::to_string(::getpid()) + "-" + std::to_string(made++)) {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    require(file && std::fwrite(text.data(), 1, text.size(), file) == text.size(), "the input can be written");
    std::fclose(file);
  }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  static inline int made = 0;
  std::string path_;
};

}  // namespace heed::fuzz
