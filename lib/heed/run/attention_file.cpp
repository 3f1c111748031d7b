#include "heed/run/attention_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

/// Returns a text with U+2400 (SYMBOL FOR NULL) in place of each U+0000, because a text of HDF5 ends at U+0000.
std::string h5_text(std::string text) {
  replace_all(text, std::string_view("\0", 1), "\u2400");
  return text;
}

std::vector<std::string> h5_texts(std::vector<std::string> texts) {
  for (std::string& text : texts) text = h5_text(std::move(text));
  return texts;
}

/// Returns the path of the temporary file for the maps: beside the output, so that it is on the same disk, or in the
/// folder for temporary files if the output is no file in a folder, but a pipe or a device. Throws Error if it cannot
/// be created there.
std::string temporary_path(const std::string& output) {
  if (!is_special(output)) return temporary_stem(output) + "." + std::to_string(::getpid()) + ".maps.tmp";
  std::string path = temporary_folder() + "/heed-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0)
    throw Error(Position{temporary_folder()},
                "cannot create a temporary file: " + errno_text() + " (set TMPDIR to another folder)");
  ::close(fd);
  return path;
}

}  // namespace

AttentionFile::AttentionFile(const std::string& output)
    : name_(std::make_unique<TemporaryName>(temporary_path(output))), file_(h5::File::create(name_->path(), output)) {}

void AttentionFile::add(std::int64_t line, const std::string& source, const std::string& target,
                        std::span<const AttentionMap> maps) {
  const std::string group = "lines/" + std::to_string(line);
  file_.make_group(group);
  file_.write_attribute(group, "source", h5_text(source));
  file_.write_attribute(group, "target", h5_text(target));
  std::pair<std::vector<std::string>, std::vector<std::string>> tokens;  // the queries and the keys of a kind
  while (!maps.empty()) {
    const AttentionMap& first = maps.front();
    const std::string kind = group + '/' + first.kind;
    if (!file_.exists(kind)) {
      file_.write_strings(kind + "/queries", h5_texts(first.rows));
      file_.write_strings(kind + "/keys", h5_texts(first.columns));
      tokens = {first.rows, first.columns};
    } else if (tokens != std::pair(first.rows, first.columns)) {
      file_.write_strings(kind + "/queries_" + std::to_string(first.layer), h5_texts(first.rows));
      file_.write_strings(kind + "/keys_" + std::to_string(first.layer), h5_texts(first.columns));
    }
    std::vector<float> weights;
    std::string heads;
    std::int64_t count = 0;
    for (const AttentionMap& map : maps) {
      if (map.kind != first.kind || map.layer != first.layer) break;
      weights.insert(weights.end(), map.weights.begin(), map.weights.end());
      heads += (heads.empty() ? "" : " ") + map.head_value();
      ++count;
    }
    const std::string dataset = kind + "/layer_" + std::to_string(first.layer);
    const std::int64_t shape[] = {count, std::ssize(first.rows), std::ssize(first.columns)};
    file_.write_floats(dataset, weights, shape);
    file_.write_attribute(dataset, "heads", heads);
    maps = maps.subspan(static_cast<std::size_t>(count));
  }
}

void AttentionFile::write_to(std::ostream& out) {
  file_.close();
  const auto file = open_input(name_->path());
  // `out << file->rdbuf()` would catch the error of a full disk and only mark the stream as failed.
  std::vector<char> block(1 << 16);
  while (file->read(block.data(), std::ssize(block)) || file->gcount() > 0) out.write(block.data(), file->gcount());
}

}  // namespace heed
