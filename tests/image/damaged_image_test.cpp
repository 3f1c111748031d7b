// Damaged image files: each is an error with a message, or the image is whole.
#include <zlib.h>

#include <algorithm>

#include "image_test.h"

namespace heed {
namespace {

constexpr const char* kTruncated = "a.png: is truncated: the image ends too early (copy or make the image again)";

std::vector<std::string> sample_files() {
  std::vector<std::string> files;
  for (const auto& entry : reference_entries("images.json")) files.push_back(entry["file"]);
  return files;
}

/// Decodes the bytes. If this throws no error, checks that the image has as many samples as its size says.
std::string decode_whole(std::string_view bytes, int channels, Image& image) {
  try {
    image = decode_image(bytes, channels, "a.png");
  } catch (const Error& error) {
    return error.what();
  }
  CHECK(image.width > 0);
  CHECK(image.samples.size() == image.row_size() * static_cast<std::size_t>(image.height));
  return {};
}

/// Returns the big-endian form of a number, as PNG and JPEG files have it.
std::string big_endian(std::uint32_t number, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(number >> (8 * i) & 0xFF);
  return out;
}

/// Writes the size into a PNG file, and the right CRC.
std::string png_of_size(std::string bytes, std::uint32_t width, std::uint32_t height) {
  bytes.replace(16, 8, big_endian(width, 4) + big_endian(height, 4));
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + 12, 17);
  return bytes.replace(29, 4, big_endian(static_cast<std::uint32_t>(crc), 4));
}

/// Writes the size into a JPEG file with a baseline or progressive header (marker SOF0 or SOF2).
std::string jpeg_of_size(std::string bytes, std::uint32_t width, std::uint32_t height) {
  std::size_t at = bytes.find("\xFF\xC0");
  if (at == std::string::npos) at = bytes.find("\xFF\xC2");
  REQUIRE(at != std::string::npos);
  return bytes.replace(at + 5, 4, big_endian(height, 2) + big_endian(width, 2));
}

TEST_CASE("every beginning of a file is an error or the whole image") {
  for (const std::string& file : sample_files()) {
    CAPTURE(file);
    const std::string bytes = file_bytes(reference_path(file));
    const Image whole = decode_image(bytes, 3, file);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      CAPTURE(size);
      Image image;
      const std::string message = decode_whole(std::string_view(bytes).substr(0, size), 3, image);
      if (message.empty()) {  // a plain PNM file may lose white space and a digit of its last sample
        CHECK(image.width == whole.width);
        std::copy(whole.samples.end() - 3, whole.samples.end(), image.samples.end() - 3);
        CHECK(image == whole);
        CHECK((file.starts_with("p1") || file.starts_with("p2") || file.starts_with("p3")));
        CHECK(size + 5 >= bytes.size());
      } else if (size >= 10) {
        CHECK(message == kTruncated);
      }
    }
  }
}

TEST_CASE("a changed byte in a PNG file is found by its CRC") {
  for (const std::string file : {"rgb16.png", "palette-transparent.png", "interlaced-rgb8.png"}) {
    const std::string bytes = file_bytes(reference_path(file));
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      CAPTURE(at);
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
      CHECK(decoding_error(damaged) != "no error");
    }
  }
  std::string damaged = file_bytes(reference_path("rgb8.png"));
  damaged[damaged.find("IEND") - 5] ^= 1;
  CHECK(decoding_error(damaged) == "a.png: is damaged: IDAT: CRC error (copy or make the image again)");
}

TEST_CASE("changed bytes anywhere are an error or give an image of the right size") {
  for (const std::string& file : sample_files()) {
    CAPTURE(file);
    const std::string bytes = file_bytes(reference_path(file));
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const int change : {0x01, 0x80, 0xFF}) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ change);
        Image image;
        decode_whole(damaged, at % 2 == 0 ? 1 : 3, image);
      }
    }
  }
}

TEST_CASE("damage that libjpeg only warns about is an error") {
  const std::string bytes = file_bytes(reference_path("rgb420.jpg"));
  const std::size_t scan = bytes.find("\xFF\xDA");
  std::string damaged = bytes.substr(0, scan + 60) + "\xFF\xD9";
  CHECK(decoding_error(damaged) ==
        "a.png: is damaged: Corrupt JPEG data: premature end of data segment (copy or make the image again)");
  damaged = bytes.substr(0, scan + 60);
  CHECK(decoding_error(damaged) == kTruncated);
  damaged = bytes;
  damaged.insert(damaged.size() - 2, std::string(100, 'a'));
  CHECK(decoding_error(damaged).starts_with("a.png: is damaged: Corrupt JPEG data: "));
  CHECK(decoding_error(damaged).ends_with(" extraneous bytes before marker 0xd9 (copy or make the image again)"));
  damaged = bytes;
  damaged.replace(damaged.find("\xFF\xC0") + 4, 1, "\x0C");
  CHECK(decoding_error(damaged) ==
        "a.png: is a JPEG image of a rare kind, which heed does not read: Unsupported JPEG data precision 12 (make it "
        "PNG or a usual JPEG)");
}

TEST_CASE("images without pixels are errors") {
  const std::string png = file_bytes(reference_path("rgb8.png")), jpeg = file_bytes(reference_path("rgb444.jpg"));
  CHECK(decoding_error(png_of_size(png, 0, 9)) == "a.png: has no pixels: its size is 0 x 9 (make the image again)");
  CHECK(decoding_error(png_of_size(png, 13, 0)) == "a.png: has no pixels: its size is 13 x 0 (make the image again)");
  CHECK(decoding_error("P6 0 3 255 ") == "a.png: has no pixels: its size is 0 x 3 (make the image again)");
  for (const auto& damaged : {jpeg_of_size(jpeg, 0, 9), jpeg_of_size(jpeg, 9, 0)})
    CHECK(decoding_error(damaged) == "a.png: has no pixels: its width or height is 0 (make the image again)");
}

TEST_CASE("images with more than 100 million pixels are refused, and small files that promise large images") {
  const auto message = [](const std::string& size) {
    return "a.png: has " + size + " pixels, more than 100 million (make the image smaller)";
  };
  const std::string png = file_bytes(reference_path("rgb8.png")), jpeg = file_bytes(reference_path("rgb444.jpg"));
  CHECK(decoding_error(png_of_size(png, 20000, 20000)) == message("20000 x 20000"));
  CHECK(decoding_error(png_of_size(png, 0xFFFFFFFF, 0xFFFFFFFF)) == message("4294967295 x 4294967295"));
  CHECK(decoding_error(jpeg_of_size(jpeg, 20000, 20000)) == message("20000 x 20000"));
  CHECK(decoding_error("P5\n20000 20000\n255\n") == message("20000 x 20000"));
  CHECK(decoding_error("P5\n4294967297 4294967297\n255\n") == message("4294967297 x 4294967297"));
  CHECK(decoding_error(png_of_size(png, 10000, 10000)) == kTruncated);
  CHECK(decoding_error(jpeg_of_size(jpeg, 10000, 10000)) == kTruncated);
  CHECK(decoding_error(jpeg_of_size(file_bytes(reference_path("progressive.jpg")), 10000, 10000)) == kTruncated);
  CHECK(decoding_error("P5\n10000 10000\n255\n") == kTruncated);
  CHECK(decoding_error("P3\n10000 10000\n255\n1 2 3") == kTruncated);
}

TEST_CASE("mistakes in PNM files are errors") {
  const auto message = [](const std::string& what) {
    return "a.png: is damaged: " + what + " (copy or make the image again)";
  };
  CHECK(decoding_error("P5 x 1 255 a") == message("the width is not a number"));
  CHECK(decoding_error("P5 -1 1 255 a") == message("the width is not a number"));
  CHECK(decoding_error("P5 1 12345678901 255 a") == message("the height has too many digits"));
  CHECK(decoding_error("P5 1 1 0 a") == message("the greatest sample value is not in 1..65535"));
  CHECK(decoding_error("P5 1 1 65536 ab") == message("the greatest sample value is not in 1..65535"));
  CHECK(decoding_error("P5 1 1 255a") == message("no white space follows the header"));
  CHECK(decoding_error("P5 1 1 9 a") == message("a sample is above the greatest sample value of the header"));
  CHECK(decoding_error("P2 1 1 9 10") == message("a sample is above the greatest sample value of the header"));
  CHECK(decoding_error("P2 2 1 9 1 b") == message("a sample is not a number"));
  CHECK(decoding_error("P1 2 1 12") == message("a pixel is neither 0 nor 1"));
  CHECK(decoding_error("P2 2 1 9 1 # 9") == kTruncated);
}

TEST_CASE("a progressive JPEG file with endless scans is an error") {
  const std::string bytes = file_bytes(reference_path("progressive.jpg"));
  // The last scan (marker SOS) is repeated, which refines the same bits again and again.
  const std::size_t scan = bytes.rfind("\xFF\xDA");
  std::string damaged = bytes.substr(0, scan);
  for (int i = 0; i < 1000; ++i) damaged += bytes.substr(scan, bytes.size() - 2 - scan);
  damaged += bytes.substr(bytes.size() - 2);
  CHECK(decoding_error(damaged).starts_with("a.png: is damaged: "));
}

}  // namespace
}  // namespace heed
