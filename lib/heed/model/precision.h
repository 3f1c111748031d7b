#pragma once

#include <string_view>
#include <utility>

#include "heed/config/fields.h"
#include "heed/tensor/context.h"

namespace heed {

template <>
struct EnumNames<Precision> {
  static constexpr std::pair<Precision, std::string_view> values[] = {{Precision::float32, "float32"},
                                                                      {Precision::bfloat16, "bfloat16"}};
};

}  // namespace heed
