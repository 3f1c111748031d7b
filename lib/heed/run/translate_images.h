#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/data/image_corpus.h"
#include "heed/dist/communicator.h"
#include "heed/run/first_bad_line.h"
#include "heed/run/translate_input.h"

namespace heed {

/// Reads the images whose paths are the lines of the input of `translate`. Many threads may call read() at once.
class TranslateImages {
 public:
  /// `input` is the path of the input, to whose folder paths are relative; `name` is its name in messages. Images that
  /// cannot be read are added to `end`, which must outlive this object, if `on_bad` says that they end the input.
  /// Messages name `rank`, the number of this process, unless it is 0: its machine may lack a file that others have.
  TranslateImages(const ImageInput& images, const std::string& input, std::string name, BadImage on_bad,
                  FirstBadLine& end, int rank)
      : reader_(images, input),
        name_(std::move(name)),
        who_(rank == 0 ? "" : "rank " + std::to_string(rank) + ": "),
        bad_line_(on_bad == BadImage::fail ? end : left_empty_) {}

  /// Reads the images of the lines `batch` of `lines`. Appends the ids of each image that could be read to `ids`, and
  /// returns the indices of their lines; the other lines are appended to `bad`.
  std::vector<std::size_t> read(const std::vector<TranslateLine>& lines, std::span<const std::size_t> batch,
                                std::vector<std::vector<std::int32_t>>& ids, std::vector<std::size_t>& bad);
  /// Forgets the images so far that could not be read.
  void forget();
  /// Adds up the images of all ranks that could not be read, and takes the first of them. Collective.
  void add_up(Communicator& ranks);
  /// Warns of the images that could not be read, unless they end the input.
  void report(Log& log) const;

 private:
  ImageReader reader_;
  std::string name_, who_;
  // The number of images that could not be read, and the first of them if they do not end the input.
  std::atomic<std::int64_t> bad_{0};
  FirstBadLine left_empty_;
  FirstBadLine& bad_line_;
};

}  // namespace heed
