#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "heed/text/lexicon/shortlist.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {

/// Returns a vocabulary of `size` pieces: the 4 reserved ones, and pieces that begin with `letter`.
inline Vocabulary numbered_vocabulary(const std::string& letter, int size) {
  std::vector<std::string> pieces = {"<pad>", "<unk>", "<s>", "</s>"};
  for (int id = 4; id < size; ++id) pieces.push_back(letter + std::to_string(id));
  return Vocabulary(pieces);
}

/// Returns a shortlist for a RandomModel with `pieces` target pieces: `frequent` pieces for all sources and `best`
/// different pieces for each source piece.
inline std::shared_ptr<const Shortlist> random_shortlist(int pieces, int frequent, int best) {
  const std::string path = std::filesystem::temp_directory_path() / ("heed_decode_" + std::to_string(::getpid()));
  std::ofstream file(path);
  file << "heed-shortlist 1\n";
  for (int i = 0; i < frequent; ++i) file << " t" << 4 + i << " 1\n";
  for (int s = 4; s < 83; ++s)
    for (int i = 0; i < best; ++i) file << 's' << s << " t" << 4 + (s * 97 + i * i * 13 + i) % (pieces - 4) << " 1\n";
  file.close();
  auto list = std::make_shared<Shortlist>(
      Shortlist::read(path, numbered_vocabulary("s", 83), numbered_vocabulary("t", pieces)));
  std::filesystem::remove(path);
  return list;
}

}  // namespace heed
