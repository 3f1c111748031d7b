#include "heed/inspect/png_canvas.h"

#include <cairo-ft.h>
#include <cairo.h>
#include <fontconfig/fontconfig.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/utf8.h"

namespace heed {
namespace {

// The largest number of pixels of a picture. So many pixels take 400 MB of memory.
constexpr double kMostPixels = 100e6;
// The greatest width and height, in pixels, that the library cairo can draw.
constexpr double kLongestSide = 32767;

template <class T, void (*Release)(T*)>
struct Releaser {
  void operator()(T* handle) const { Release(handle); }
};
using Pattern = std::unique_ptr<FcPattern, Releaser<FcPattern, FcPatternDestroy>>;
using Config = std::unique_ptr<FcConfig, Releaser<FcConfig, FcConfigDestroy>>;
using CharSet = std::unique_ptr<FcCharSet, Releaser<FcCharSet, FcCharSetDestroy>>;
using Face = std::unique_ptr<cairo_font_face_t, Releaser<cairo_font_face_t, cairo_font_face_destroy>>;
using Surface = std::unique_ptr<cairo_surface_t, Releaser<cairo_surface_t, cairo_surface_destroy>>;
using Scaled = std::unique_ptr<cairo_scaled_font_t, Releaser<cairo_scaled_font_t, cairo_scaled_font_destroy>>;

/// Returns the installed sans-serif font that the library fontconfig chooses for texts with the character `letter`.
Face find_font(FcConfig* config, bool bold, char32_t letter) {
  const Pattern pattern(FcPatternCreate());
  FcPatternAddString(pattern.get(), FC_FAMILY, reinterpret_cast<const FcChar8*>("sans-serif"));
  FcPatternAddInteger(pattern.get(), FC_WEIGHT, bold ? FC_WEIGHT_BOLD : FC_WEIGHT_REGULAR);
  const CharSet letters(FcCharSetCreate());
  FcCharSetAddChar(letters.get(), letter);
  FcPatternAddCharSet(pattern.get(), FC_CHARSET, letters.get());
  FcConfigSubstitute(config, pattern.get(), FcMatchPattern);
  FcDefaultSubstitute(pattern.get());
  FcResult result{};
  const Pattern match(FcFontMatch(config, pattern.get(), &result));
  if (!match)
    throw Error(
        "no font is installed to write PNG pictures with (apt-get install fonts-dejavu-core, or use --format svg)");
  return Face(cairo_ft_font_face_create_for_pattern(match.get()));
}

/// Returns a surface with the pixels of an image.
Surface surface_of(const Image& image) {
  Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, image.width, image.height));
  if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS) throw Error("out of memory for an image");
  unsigned char* const bytes = cairo_image_surface_get_data(surface.get());
  const int stride = cairo_image_surface_get_stride(surface.get());
  for (int y = 0; y < image.height; ++y) {
    auto* const row = reinterpret_cast<std::uint32_t*>(bytes + static_cast<std::ptrdiff_t>(y) * stride);
    for (int x = 0; x < image.width; ++x) {
      const std::uint8_t* const pixel = image.pixel(x, y);
      const int green = image.channels == 3 ? 1 : 0, blue = image.channels == 3 ? 2 : 0;
      row[x] = static_cast<std::uint32_t>(pixel[0] << 16 | pixel[green] << 8 | pixel[blue]);
    }
  }
  cairo_surface_mark_dirty(surface.get());
  return surface;
}

/// Returns the contents of a PNG file with the pixels of a surface.
std::string png_of(cairo_surface_t* surface) {
  std::string out;
  cairo_surface_flush(surface);
  const auto append = [](void* closure, const unsigned char* data, unsigned length) {
    static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
    return CAIRO_STATUS_SUCCESS;
  };
  const cairo_status_t status = cairo_surface_write_to_png_stream(surface, append, &out);
  if (status != CAIRO_STATUS_SUCCESS)
    throw Error(std::string("cairo cannot make the PNG picture: ") + cairo_status_to_string(status));
  return out;
}

}  // namespace

struct PngCanvas::Cairo {
  Surface surface;
  std::unique_ptr<cairo_t, Releaser<cairo_t, cairo_destroy>> context;
  Config installed{FcInitLoadConfigAndFonts()};
  std::map<std::pair<bool, char32_t>, Face> fonts;

  cairo_t* get() const { return context.get(); }

  void color(Rgb c) const { cairo_set_source_rgb(get(), c.red / 255.0, c.green / 255.0, c.blue / 255.0); }

  cairo_font_face_t* font(bool bold, char32_t letter) {
    Face& face = fonts[{bold, letter}];
    if (!face) face = find_font(installed.get(), bold, letter);
    return face.get();
  }
};

namespace {

/// A part of a text that is drawn in one font. The glyphs (drawn characters) have positions relative to the start of
/// the whole text.
struct Run {
  cairo_font_face_t* face;
  std::vector<cairo_glyph_t> glyphs;
};

/// Returns the text in a form that cairo accepts: ill-formed UTF-8, NUL and the noncharacters of Unicode become U+FFFD.
std::string drawable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = decode_utf8(text, at);
    const bool refused = c == 0 || (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
    append_utf8(out, refused ? kReplacementCharacter : c);
  }
  return out;
}

/// Returns the glyphs (drawn characters) of a text in the font `face`. The first glyph is at x = `pen`, and `pen` is
/// moved behind the last glyph. Sets `missing` to whether the font lacks a character of the text.
std::vector<cairo_glyph_t> shape(cairo_font_face_t* face, double size, std::string_view text, double& pen,
                                 bool& missing) {
  cairo_matrix_t matrix, identity;
  cairo_matrix_init_scale(&matrix, size, size);
  cairo_matrix_init_identity(&identity);
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  const Scaled scaled(cairo_scaled_font_create(face, &matrix, &identity, options));
  cairo_font_options_destroy(options);
  cairo_glyph_t* glyphs = nullptr;
  int count = 0;
  if (cairo_scaled_font_text_to_glyphs(scaled.get(), pen, 0, text.data(), static_cast<int>(text.size()), &glyphs,
                                       &count, nullptr, nullptr, nullptr) != CAIRO_STATUS_SUCCESS)
    throw Error("cairo cannot shape the text '" + std::string(text) + "'");
  std::vector<cairo_glyph_t> out(glyphs, glyphs + count);
  cairo_glyph_free(glyphs);
  cairo_text_extents_t extents;
  cairo_scaled_font_glyph_extents(scaled.get(), out.data(), count, &extents);
  pen += extents.x_advance;
  missing = false;
  for (const cairo_glyph_t& glyph : out) missing = missing || glyph.index == 0;
  return out;
}

}  // namespace

PngCanvas::PngCanvas(double width, double height, double scale) : cairo_(std::make_unique<Cairo>()) {
  const double columns = std::ceil(width * scale), rows = std::ceil(height * scale);
  if (columns > kLongestSide || rows > kLongestSide || columns * rows > kMostPixels)
    throw Error("the PNG picture would have " + std::to_string(static_cast<long long>(columns)) + " x " +
                std::to_string(static_cast<long long>(rows)) +
                " pixels (choose fewer lines, layers, heads or positions, or --format svg)");
  cairo_->surface.reset(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(columns), static_cast<int>(rows)));
  cairo_->context.reset(cairo_create(cairo_->surface.get()));
  if (cairo_status(cairo_->get()) != CAIRO_STATUS_SUCCESS) throw Error("out of memory for the PNG picture");
  cairo_scale(cairo_->get(), scale, scale);
  rectangle({0, 0}, width + 1, height + 1, {255, 255, 255});
}

PngCanvas::~PngCanvas() = default;

void PngCanvas::rectangle(Point corner, double width, double height, Rgb fill, std::string_view, double opacity) {
  cairo_set_source_rgba(cairo_->get(), fill.red / 255.0, fill.green / 255.0, fill.blue / 255.0, opacity);
  cairo_rectangle(cairo_->get(), corner.x, corner.y, width, height);
  cairo_fill(cairo_->get());
}

void PngCanvas::picture(Point corner, double width, double height, const Image& image) {
  const Surface surface = surface_of(image);
  cairo_t* const cairo = cairo_->get();
  cairo_save(cairo);
  cairo_translate(cairo, corner.x, corner.y);
  cairo_scale(cairo, width / image.width, height / image.height);
  cairo_set_source_surface(cairo, surface.get(), 0, 0);
  cairo_pattern_set_extend(cairo_get_source(cairo), CAIRO_EXTEND_PAD);
  cairo_rectangle(cairo, 0, 0, image.width, image.height);
  cairo_fill(cairo);
  cairo_restore(cairo);
}

void PngCanvas::line(std::span<const Point> points, Rgb color, double width) {
  cairo_->color(color);
  cairo_set_line_width(cairo_->get(), width);
  cairo_set_line_join(cairo_->get(), CAIRO_LINE_JOIN_ROUND);
  for (const Point& point : points) cairo_line_to(cairo_->get(), point.x, point.y);
  cairo_stroke(cairo_->get());
}

void PngCanvas::dot(Point center, double radius, Rgb fill, std::string_view) {
  cairo_->color(fill);
  cairo_arc(cairo_->get(), center.x, center.y, radius, 0, 2 * std::acos(-1.0));
  cairo_fill(cairo_->get());
}

void PngCanvas::text(Point at, std::string_view raw, const TextStyle& style) {
  const std::string shown = drawable(raw);
  const std::string_view text = shown;
  std::vector<Run> runs;
  double pen = 0;
  bool missing = false;
  cairo_font_face_t* const usual = cairo_->font(style.bold, U'a');
  runs.push_back({usual, shape(usual, style.size, text, pen, missing)});
  if (missing) {
    // The usual font lacks a character of the text, so each character is placed separately, in a font that has the
    // character.
    runs.clear();
    pen = 0;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      const char32_t letter = decode_utf8(text, end);
      double next = pen;
      const std::string_view one = text.substr(begin, end - begin);
      auto glyphs = shape(usual, style.size, one, next, missing);
      cairo_font_face_t* const face = missing ? cairo_->font(style.bold, letter) : usual;
      if (missing) glyphs = shape(face, style.size, one, next = pen, missing);
      runs.push_back({face, std::move(glyphs)});
      pen = next;
    }
  }
  cairo_t* const cairo = cairo_->get();
  cairo_save(cairo);
  cairo_->color(style.color);
  cairo_translate(cairo, at.x, at.y);
  cairo_rotate(cairo, style.rotate * std::acos(-1.0) / 180);
  cairo_translate(cairo, style.anchor == Anchor::start ? 0 : style.anchor == Anchor::middle ? -pen / 2 : -pen, 0);
  for (const Run& run : runs) {
    cairo_set_font_face(cairo, run.face);
    cairo_set_font_size(cairo, style.size);
    cairo_show_glyphs(cairo, run.glyphs.data(), static_cast<int>(run.glyphs.size()));
  }
  cairo_restore(cairo);
}

std::string PngCanvas::take() {
  return png_of(cairo_->surface.get());
}

std::string png_of(const Image& image) {
  return png_of(surface_of(image).get());
}

}  // namespace heed
