#pragma once

namespace heed {

/// Returns whether a byte is ASCII white space: a space, or one of the control characters from tab to carriage return.
constexpr bool is_ascii_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Returns whether a byte is an ASCII digit.
constexpr bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace heed
