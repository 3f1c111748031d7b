#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/data/image_corpus.h"
#include "heed/run/translate_input.h"

namespace heed {

/// Reads the images whose paths are the lines of the input of `translate`, and counts those that cannot be read. Many
/// threads may call read() at once.
class TranslateImages {
 public:
  /// `input` is the path of the input, to whose folder paths are relative; `name` is its name in messages.
  TranslateImages(const ImageInput& images, const std::string& input, std::string name, BadImage on_bad)
      : reader_(images, input), name_(std::move(name)), on_bad_(on_bad) {}

  /// Reads the images of the lines `batch` of `lines`. Appends the ids of each image that could be read to `ids`, and
  /// returns the indices of their lines; the other lines are appended to `bad`.
  std::vector<std::size_t> read(const std::vector<TranslateLine>& lines, std::span<const std::size_t> batch,
                                std::vector<std::vector<std::int32_t>>& ids, std::vector<std::size_t>& bad);
  /// An image that cannot be read and that ends the input.
  struct End {
    std::int64_t line;
    std::string error;
  };
  /// Returns the first image that could not be read, if --on-bad-image says that it ends the input.
  std::optional<End> end() const {
    return bad_ > 0 && on_bad_ == BadImage::fail ? std::optional(End{first_, error_}) : std::nullopt;
  }
  /// Warns of the images that could not be read, unless they end the input.
  void report(Log& log) const;

 private:
  void count(std::int64_t line, const std::string& error);

  ImageReader reader_;
  std::string name_;
  BadImage on_bad_;
  // What was wrong: how many images, and the first of them.
  std::mutex mutex_;
  std::int64_t bad_ = 0, first_ = 0;
  std::string error_;
};

}  // namespace heed
