#include "heed/image/read_image.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "image_test.h"
#include "scratch_folder.h"

namespace heed {
namespace {

/// Checks the samples of a JPEG file against Pillow's, which are hexadecimal digits. The tolerance of 2 levels is for
/// other versions of libjpeg.
void check_close(const Image& image, const std::string& digits) {
  REQUIRE(digits.size() == 2 * image.samples.size());
  int most = 0;
  for (std::size_t i = 0; i < image.samples.size(); ++i)
    most = std::max(most, std::abs(std::stoi(digits.substr(2 * i, 2), nullptr, 16) - image.samples[i]));
  CHECK(most <= 2);
}

TEST_CASE("files of all kinds are decoded as by Pillow") {
  for (const auto& entry : reference_entries("images.json")) {
    const std::string file = entry["file"];
    CAPTURE(file);
    for (const int channels : {1, 3}) {
      CAPTURE(channels);
      const Image image = read_image(reference_path(file), channels);
      CHECK(image.width == entry["width"].get<int>());
      CHECK(image.height == entry["height"].get<int>());
      CHECK(image.channels == channels);
      REQUIRE(image.samples.size() == image.row_size() * static_cast<std::size_t>(image.height));
      const std::string expected = entry[channels == 1 ? "grey" : "rgb"];
      if (file.ends_with(".jpg"))
        check_close(image, expected);
      else
        CHECK(hash_of(image) == expected);
    }
  }
}

TEST_CASE("a JPEG file is not turned as its EXIF data says") {
  const Image image = read_image(reference_path("turned.jpg"), 3);
  CHECK(image.width == 21);
  CHECK(image.height == 19);
}

TEST_CASE("bytes after the end of an image have no effect") {
  for (const std::string file : {"rgb8.png", "rgb420.jpg", "p6-255.ppm"}) {
    const std::string bytes = file_bytes(reference_path(file));
    CHECK(decode_image(bytes + std::string("\0more", 5), 3, file) == decode_image(bytes, 3, file));
  }
}

TEST_CASE("PNM headers may have comments anywhere, and plain bits need no spaces") {
  const Image image = decode_image("P1#a\n3 # b\r\n#c\n 2\n1 01#d\n0\n0 1", 1, "a");
  CHECK(image.samples == std::vector<std::uint8_t>{0, 255, 0, 255, 255, 0});
  const Image raw = decode_image("P5 2\n1 255\n\n ", 1, "a");  // the samples are a line feed and a space
  CHECK(raw.samples == std::vector<std::uint8_t>{'\n', ' '});
}

std::string reading_error(const std::string& path) {
  try {
    read_image(path, 3);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("files that cannot be read are errors") {
  const ScratchFolder folder;
  CHECK(reading_error(folder / "none.png") == (folder / "none.png") + ": cannot open: No such file or directory");
  CHECK(reading_error(folder / "") == (folder / "") + ": is a folder (name an image file)");
  std::ofstream(folder / "empty.png");
  CHECK(reading_error(folder / "empty.png") == (folder / "empty.png") + ": is empty (copy the image again)");
  std::ofstream(folder / "large.ppm") << "P6 1 1 255 abc";
  std::filesystem::resize_file(folder / "large.ppm", std::uintmax_t{3} << 30);  // a sparse file, without blocks
  CHECK(reading_error(folder / "large.ppm") == (folder / "large.ppm") + ": has more than 1 GiB, too much for an image");
  std::ofstream(folder / "text.png") << "a line\n";
  CHECK(reading_error(folder / "text.png") ==
        (folder / "text.png") + ": is text, not an image (name a PNG, JPEG, PBM, PGM or PPM file)");
}

TEST_CASE("the content of a file decides its format, not its name") {
  const ScratchFolder folder;
  std::filesystem::copy(reference_path("rgb8.png"), folder / "image.jpg");
  CHECK(read_image(folder / "image.jpg", 3) == read_image(reference_path("rgb8.png"), 3));
}

TEST_CASE("a file larger than the first block that is read, and one that is no regular file") {
  const Image image = random_image(200, 150, 3);
  const ScratchFolder folder;
  std::ofstream(folder / "large.ppm", std::ios::binary)
      << "P6\n200 150\n255\n"
      << std::string_view(reinterpret_cast<const char*>(image.samples.data()), image.samples.size());
  CHECK(read_image(folder / "large.ppm", 3) == image);
  CHECK(reading_error("/dev/zero") ==
        "/dev/zero: is not an image that heed reads (name a PNG, JPEG, PBM, PGM or PPM file)");
}

TEST_CASE("an image is read from a pipe") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const std::string bytes = file_bytes(reference_path("p6-255.ppm"));
  for (const char byte : bytes) REQUIRE(::write(ends[1], &byte, 1) == 1);
  ::close(ends[1]);
  CHECK(read_image("/dev/fd/" + std::to_string(ends[0]), 3) == decode_image(bytes, 3, "a"));
  ::close(ends[0]);
}

TEST_CASE("formats that heed does not read are named") {
  const auto message = [](const std::string& what) {
    return "a.png: is " + what + ", which heed does not read (make it PNG, JPEG or PPM)";
  };
  const std::string zeros(20, '\0');
  CHECK(decoding_error("GIF89a" + zeros) == message("a GIF image"));
  CHECK(decoding_error("GIF87a" + zeros) == message("a GIF image"));
  CHECK(decoding_error("BM\x46" + zeros) == message("a BMP image"));
  CHECK(decoding_error("RIFF" + std::string(4, '\1') + "WEBPVP8 " + zeros) == message("a WebP image"));
  CHECK(decoding_error("II*" + zeros) == message("a TIFF image"));
  CHECK(decoding_error("MM" + std::string("\0*", 2) + zeros) == message("a TIFF image"));
  CHECK(decoding_error(std::string("\0\0\0\x1c", 4) + "ftypavif" + zeros) == message("an AVIF image"));
  CHECK(decoding_error(std::string("\0\0\0\x1c", 4) + "ftypheic" + zeros) == message("a HEIC image"));
  CHECK(decoding_error("\x1F\x8B\x08" + zeros) == message("gzip data"));
  CHECK(decoding_error("P7\nWIDTH 1\n") == message("a PAM image"));
  CHECK(decoding_error("%PDF-1.7\n") == message("a PDF document"));
  CHECK(decoding_error("<!DOCTYPE html>\n") == "a.png: is text, not an image (name a PNG, JPEG, PBM, PGM or PPM file)");
  CHECK(decoding_error("\x7F"
                       "ELF" +
                       zeros) == "a.png: is not an image that heed reads (name a PNG, JPEG, PBM, PGM or PPM file)");
}

}  // namespace
}  // namespace heed
