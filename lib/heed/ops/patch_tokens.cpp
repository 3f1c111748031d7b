#include "heed/ops/patch_tokens.h"

#include "heed/ops/check.h"
#include "heed/ops/parts.h"

namespace heed {

template <class T>
Variable<T> patch_tokens(Graph<T>& graph, const Variable<T>& patches, const Variable<T>& class_token,
                         const Variable<T>& positions) {
  const std::int64_t width = patches.value.columns(), length = positions.value.rows();
  const std::int64_t first = class_token ? 1 : 0, own = length - first, images = patches.value.rows() / own;
  check_shape("patch_tokens", "positions", positions.shape(), {length, width});
  check_shape("patch_tokens", "patches", patches.shape(), {images * own, width});
  if (class_token) check_shape("patch_tokens", "class_token", class_token.shape(), {1, width});
  const Variable<T> y = graph.result({images * length, width});
  graph.run([&](auto& device) {
    for (std::int64_t b = 0; b < images; ++b) {
      T* const to = y.value.row(b * length);
      copy_block<T>(device, positions.value.data(), width, to, width, length, width);
      if (class_token) add_block<T>(device, class_token.value.data(), width, to, width, 1, width);
      add_block<T>(device, patches.value.row(b * own), width, to + first * width, width, own, width);
    }
  });
  graph.record([patches, class_token, positions, y, width, length, first, own, images](auto& device) {
    const Tensor<T> dy = y.gradient.sum();
    for (std::int64_t b = 0; b < images; ++b) {
      const T* const from = dy.row(b * length);
      if (positions.tracked()) add_block<T>(device, from, width, positions.gradient.sum().data(), width, length, width);
      if (class_token.tracked()) add_block<T>(device, from, width, class_token.gradient.sum().data(), width, 1, width);
      if (patches.tracked())
        add_block<T>(device, from + first * width, width, patches.gradient.sum().row(b * own), width, own, width);
    }
  });
  return y;
}

template Variable<float> patch_tokens(Graph<float>&, const Variable<float>&, const Variable<float>&,
                                      const Variable<float>&);
template Variable<double> patch_tokens(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                       const Variable<double>&);

}  // namespace heed
