#include "heed/text/unigram/sentencepiece_normalizer.h"

#include <utility>

#include "heed/base/error.h"
#include "heed/base/utf8.h"

namespace heed {
namespace {

// The following functions read the fields of a unit, which is an element of the double-array trie of the library
// Darts-clone (each unit is a node). has_value: whether a key ends at this node; if so, one of its children is a value
// unit. value_of: the value that a value unit holds. label_of: the byte that leads to the node (no byte equals the
// label of a value unit). offset_of: the number that is XORed with the node's index and the child's byte to find the
// child.
constexpr bool has_value(std::uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
constexpr std::uint32_t value_of(std::uint32_t unit) {
  return unit & 0x7FFFFFFFu;
}
constexpr std::uint32_t label_of(std::uint32_t unit) {
  return unit & (1u << 31 | 0xFFu);
}
constexpr std::uint32_t offset_of(std::uint32_t unit) {
  return unit >> 10 << ((unit & 1u << 9) >> 6);
}

constexpr std::size_t kBlockBytes = 1024;
// How many matching rules longest_rule() looks at for one place of the text, as in SentencePiece.
constexpr int kMostRules = 32;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::uint32_t read_uint32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Returns the number of bytes of the UTF-8 character that `text` starts with, or 0 if `text` starts with ill-formed
/// bytes.
std::size_t code_point_bytes(std::string_view text) {
  std::size_t at = 0;
  bool valid = true;
  decode_utf8(text, at, &valid);
  return valid ? at : 0;
}

}  // namespace

SentencePieceNormalizer::SentencePieceNormalizer(const SentencePieceRules& spec, bool whitespace_as_suffix,
                                                 PieceTrie verbatim, const std::string& where)
    : dummy_prefix_(spec.add_dummy_prefix),
      squeeze_(spec.remove_extra_whitespaces),
      suffix_(whitespace_as_suffix),
      space_(spec.escape_whitespaces ? kSpaceSymbol : " "),
      verbatim_(std::move(verbatim)) {
  if (!spec.precompiled_charsmap.empty()) read_map(spec.precompiled_charsmap, where);
  find_plain_bytes();
}

/// Reads the precompiled map `blob`, which holds the normalisation rules of a model. The map has three parts: the size
/// in bytes of a double-array trie (32 bits), the units of this trie (32 bits each; their keys are the strings to
/// replace), and the replacement strings. Numbers are little-endian.
void SentencePieceNormalizer::read_map(std::string_view blob, const std::string& where) {
  const auto fail = [&] {
    throw Error(Position{where},
                "its precompiled_charsmap is damaged (download the SentencePiece model or train it again)");
  };
  if (blob.size() <= 4) fail();
  const std::size_t size = read_uint32(blob);
  blob.remove_prefix(4);
  if (size >= blob.size() || size < kBlockBytes || size % kBlockBytes != 0 || blob.back() != '\0') fail();
  map_.resize(size / 4);
  for (std::size_t i = 0; i < map_.size(); ++i) map_[i] = read_uint32(blob.substr(4 * i));
  replacements_ = blob.substr(size);
  // Rejects replacement strings with a line end: a piece with a line end would break the lines of the output.
  if (replacements_.find('\n') != std::string::npos) fail();
}

void SentencePieceNormalizer::find_plain_bytes() {
  for (std::uint32_t byte = 0; byte < 0x80; ++byte) {
    if (!verbatim_.empty() && verbatim_.walk().step(static_cast<unsigned char>(byte))) continue;
    bool plain = true;
    if (!map_.empty()) {
      const std::size_t at = offset_of(map_[0]) ^ byte;
      const std::uint32_t first = unit(at);
      if (label_of(first) == byte) {
        plain = !has_value(first);
        for (std::uint32_t next = 0; next < 0x80 && plain; ++next)
          plain = label_of(unit(at ^ offset_of(first) ^ next)) != next;
      }
    }
    plain_[byte] = plain;
  }
  plain_space_ = std::exchange(plain_[' '], false);
}

bool SentencePieceNormalizer::longest_rule(std::string_view text, Part& part) const {
  if (map_.empty()) return false;
  std::size_t at = offset_of(map_[0]);
  std::size_t bytes = 0, replacement = 0;
  int rules = 0;
  for (std::size_t i = 0; i < text.size() && rules < kMostRules; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    const std::uint32_t here = unit(at);
    if (at >= map_.size() || label_of(here) != byte) break;
    at ^= offset_of(here);
    if (!has_value(here) || at >= map_.size()) continue;
    ++rules;
    bytes = i + 1;
    replacement = value_of(map_[at]);
  }
  if (bytes == 0 || replacement >= replacements_.size()) return false;
  part = {std::string_view(replacements_.c_str() + replacement), bytes};
  return true;
}

SentencePieceNormalizer::Part SentencePieceNormalizer::first_part(std::string_view text) const {
  std::size_t longest = 0;
  verbatim_.prefixes(text, [&](std::size_t bytes, std::int32_t) {
    longest = bytes;
    return true;
  });
  if (longest > 0) return {text.substr(0, longest), longest};
  Part part{};
  if (longest_rule(text, part)) return part;
  const std::size_t bytes = code_point_bytes(text);
  if (bytes == 0) return {kReplacement, 1};
  return {text.substr(0, bytes), bytes};
}

void SentencePieceNormalizer::normalize(std::string_view text, std::string& out,
                                        std::vector<std::size_t>* origins) const {
  out.clear();
  if (origins) origins->clear();
  std::size_t at = 0;
  const auto put = [&](std::string_view part) {
    out += part;
    if (origins) origins->resize(out.size(), at);
  };
  while (squeeze_ && at < text.size()) {
    const Part part = first_part(text.substr(at));
    if (part.normal != " ") break;
    at += part.bytes;
  }
  if (at == text.size()) {
    if (origins) origins->push_back(at);
    return;
  }
  if (dummy_prefix_ && !suffix_) put(space_);
  bool after_space = squeeze_;
  while (at < text.size()) {
    const std::size_t start = at;
    while (at < text.size() && plain_[static_cast<unsigned char>(text[at])]) ++at;
    if (at > start && at < text.size() && static_cast<signed char>(text[at]) < 0) --at;
    if (at > start) {
      out.append(text, start, at - start);
      if (origins)
        for (std::size_t i = start; i < at; ++i) origins->push_back(i);
      after_space = false;
      continue;
    }
    if (text[at] == ' ' && plain_space_ && (at + 1 == text.size() || static_cast<signed char>(text[at + 1]) >= 0)) {
      if (!after_space) put(space_);
      after_space = squeeze_;
      ++at;
      continue;
    }
    const Part part = first_part(text.substr(at));
    std::string_view normal = part.normal;
    while (after_space && normal.starts_with(' ')) normal.remove_prefix(1);
    for (const char& c : normal) put(c == ' ' ? space_ : std::string_view(&c, 1));
    if (!normal.empty()) after_space = normal.ends_with(' ');
    if (!squeeze_) after_space = false;
    at += part.bytes;
  }
  while (squeeze_ && out.ends_with(space_)) {
    out.resize(out.size() - space_.size());
    if (!origins) continue;
    at = (*origins)[out.size()];
    origins->resize(out.size());
  }
  if (dummy_prefix_ && suffix_) put(space_);
  if (origins) origins->push_back(at);
}

}  // namespace heed
