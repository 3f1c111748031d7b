#include "heed/run/translate_images.h"

#include "heed/base/error.h"
#include "heed/base/log.h"

namespace heed {

std::vector<std::size_t> TranslateImages::read(const std::vector<TranslateLine>& lines,
                                               std::span<const std::size_t> batch,
                                               std::vector<std::vector<std::int32_t>>& ids,
                                               std::vector<std::size_t>& bad) {
  std::vector<std::size_t> readable;
  for (const std::size_t i : batch) {
    const TranslateLine& line = lines[i];
    try {
      const Image image = reader_.read(line.text);
      ids.emplace_back();
      ImageReader::append_ids(image, ids.back());
      readable.push_back(i);
    } catch (const Error& error) {
      bad.push_back(i);
      count(line.number, Error(Position{name_, line.number}, error.what()).what());
    }
  }
  return readable;
}

void TranslateImages::count(std::int64_t line, const std::string& error) {
  const std::lock_guard guard(mutex_);
  ++bad_;
  if (first_ != 0 && line > first_) return;
  first_ = line;
  error_ = error;
}

void TranslateImages::report(Log& log) const {
  if (bad_ > 0 && on_bad_ != BadImage::fail)
    log.warn(error_ + "; lines left empty because their image cannot be read: " + format_count(bad_));
}

}  // namespace heed
