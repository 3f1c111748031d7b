#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/random.h"
#include "heed/image/image.h"
#include "heed/image/read_image.h"

namespace heed {

/// Returns the path of a file that scripts/reference/make_image_reference.py wrote.
inline std::string reference_path(const std::string& file) {
  return std::string(HEED_TEST_DATA) + "/image/reference/" + file;
}

inline std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Returns the entries of a reference file.
inline nlohmann::json reference_entries(const std::string& file) {
  const nlohmann::json entries = nlohmann::json::parse(file_bytes(reference_path(file))).at("entries");
  REQUIRE_FALSE(entries.empty());
  return entries;
}

/// Returns the hash FNV-1a of the image's samples as the reference files have it.
inline std::string hash_of(const Image& image) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const std::uint8_t byte : image.samples) hash = (hash ^ byte) * 0x100000001B3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

/// Returns one of the two images for scaling and for operations: "photo.png" in colour, "grey.png" in grey.
inline Image source_image(const std::string& file) {
  return read_image(reference_path(file), file == "grey.png" ? 1 : 3);
}

/// Returns an image of random samples.
inline Image random_image(int width, int height, int channels, std::uint64_t seed = 1) {
  Image image = Image::black(width, height, channels);
  const RandomStream stream(seed, RandomUse::examples);
  for (std::size_t i = 0; i < image.samples.size(); ++i)
    image.samples[i] = static_cast<std::uint8_t>(stream.below(256, i));
  return image;
}

/// Returns the message of the error that decoding the bytes throws, or "no error".
inline std::string decoding_error(std::string_view bytes, int channels = 3) {
  try {
    decode_image(bytes, channels, "a.png");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace heed
