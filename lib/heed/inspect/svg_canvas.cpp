#include "heed/inspect/svg_canvas.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "heed/base/utf8.h"
#include "heed/inspect/png_canvas.h"

namespace heed {
namespace {

/// Returns a coordinate as text for an SVG file, rounded to two decimals.
std::string number(double value) {
  char out[32];
  const auto [end, error] = std::to_chars(out, out + sizeof out, std::round(value * 100) / 100 + 0.0);
  return error == std::errc() ? std::string(out, end) : "0";
}

std::string attribute(std::string_view name, double value) {
  return ' ' + std::string(name) + "=\"" + number(value) + '"';
}

std::string color(std::string_view name, Rgb value) {
  return ' ' + std::string(name) + "=\"" + hex_text(value) + '"';
}

std::string close(std::string_view element, std::string_view hint) {
  if (hint.empty()) return "/>\n";
  return "><title>" + xml_escape(hint) + "</title></" + std::string(element) + ">\n";
}

/// Returns bytes as text in Base64 (RFC 4648).
std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

std::string xml_escape(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = decode_utf8(text, at);
    const bool allowed = c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0xFFFE && c != 0xFFFF);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      append_utf8(out, allowed ? c : kReplacementCharacter);
  }
  return out;
}

SvgCanvas::SvgCanvas(double width, double height, std::string_view title) {
  out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"" +
         attribute("width", width) + attribute("height", height) + " viewBox=\"0 0 " + number(width) + ' ' +
         number(height) +
         "\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" font-family=\"'DejaVu Sans', 'Noto Sans', Verdana, "
         "sans-serif\">\n";
  if (!title.empty()) out_ += "<title>" + xml_escape(title) + "</title>\n";
  out_ += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
}

void SvgCanvas::rectangle(Point corner, double width, double height, Rgb fill, std::string_view hint, double opacity) {
  out_ += "<rect" + attribute("x", corner.x) + attribute("y", corner.y) + attribute("width", width) +
          attribute("height", height) + color("fill", fill) + (opacity < 1 ? attribute("fill-opacity", opacity) : "") +
          close("rect", hint);
}

void SvgCanvas::picture(Point corner, double width, double height, const Image& image) {
  const std::string element = attribute("width", width) + attribute("height", height) +
                              " preserveAspectRatio=\"none\" xlink:href=\"data:image/png;base64," +
                              base64(png_of(image)) + "\"/>";
  const auto [found, is_new] = pictures_.emplace(element, pictures_.size() + 1);
  const std::string id = "picture-" + std::to_string(found->second);
  if (is_new) out_ += "<defs><image id=\"" + id + '"' + element + "</defs>\n";
  out_ += "<use xlink:href=\"#" + id + '"' + attribute("x", corner.x) + attribute("y", corner.y) + "/>\n";
}

void SvgCanvas::line(std::span<const Point> points, Rgb stroke, double width) {
  out_ += "<polyline points=\"";
  for (std::size_t i = 0; i < points.size(); ++i)
    out_ += (i == 0 ? "" : " ") + number(points[i].x) + ',' + number(points[i].y);
  out_ += "\" fill=\"none\" stroke-linejoin=\"round\"" + color("stroke", stroke) + attribute("stroke-width", width) +
          "/>\n";
}

void SvgCanvas::dot(Point center, double radius, Rgb fill, std::string_view hint) {
  out_ += "<circle" + attribute("cx", center.x) + attribute("cy", center.y) + attribute("r", radius) +
          color("fill", fill) + close("circle", hint);
}

void SvgCanvas::text(Point at, std::string_view text, const TextStyle& style) {
  out_ += "<text" + attribute("x", at.x) + attribute("y", at.y) + attribute("font-size", style.size) +
          color("fill", style.color);
  if (style.anchor != Anchor::start)
    out_ += style.anchor == Anchor::middle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
  if (style.bold) out_ += " font-weight=\"bold\"";
  if (style.rotate != 0)
    out_ += " transform=\"rotate(" + number(style.rotate) + ' ' + number(at.x) + ' ' + number(at.y) + ")\"";
  out_ += '>' + xml_escape(text) + "</text>\n";
}

std::string SvgCanvas::take() {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace heed
