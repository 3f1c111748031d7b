#pragma once

#include <string>

#include "heed/base/error.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// Throws Error "internal: OP: ARGUMENT has shape [..], expected [..]" where the two shapes differ.
inline void check_shape(const char* op, const char* argument, const Shape& actual, const Shape& expected) {
  if (actual == expected) return;
  throw Error(std::string("internal: ") + op + ": " + argument + " has shape " + actual.text() + ", expected " +
              expected.text());
}

}  // namespace heed
