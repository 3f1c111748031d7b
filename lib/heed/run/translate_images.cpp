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
      bad_line_.add(line.number, who_ + Error(Position{name_, line.number}, error.what()).what());
      ++bad_;
    }
  }
  return readable;
}

void TranslateImages::forget() {
  bad_ = 0;
  left_empty_.forget();
}

void TranslateImages::add_up(Communicator& ranks) {
  std::int64_t numbers[] = {bad_};
  heed::add_up(ranks, numbers);
  bad_ = numbers[0];
  left_empty_.take_first(ranks);
}

void TranslateImages::report(Log& log) const {
  if (left_empty_.line() != FirstBadLine::kNone)
    log.warn(left_empty_.error() + "; lines left empty because their image cannot be read: " + format_count(bad_));
}

}  // namespace heed
