#include "heed/nn/position_encoding.h"

#include <cmath>

#include "heed/base/error.h"

namespace heed {
namespace {

/// Fills the table of cosines and sines by which rotary() rotates heads (see fill_sinusoids()).
template <class T>
void fill_rotations(Tensor<T> table) {
  const std::int64_t d = table.columns() / 2;
  if (d % 2 != 0)
    throw Error("internal: rotary positions need heads of an even width, not " + std::to_string(d) + " columns");
  for (std::int64_t i = 0; i < d; i += 2) {
    const double frequency = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(d));
    for (std::int64_t position = 0; position < table.rows(); ++position) {
      const double angle = static_cast<double>(position) * frequency;
      T* row = table.row(position);
      row[i] = row[i + 1] = static_cast<T>(std::cos(angle));
      row[d + i + 1] = static_cast<T>(std::sin(angle));
      row[d + i] = -row[d + i + 1];
    }
  }
}

}  // namespace

template <class T>
void fill_sinusoids(PositionEncoding kind, Tensor<T> table) {
  if (kind == PositionEncoding::rotary) return fill_rotations(table);
  const std::int64_t width = table.columns(), half = width / 2;
  if (width % 2 != 0) throw Error("internal: sinusoids need an even width, not " + std::to_string(width));
  const bool interleaved = kind == PositionEncoding::interleaved;
  for (std::int64_t i = 0; i < half; ++i) {
    const double exponent = interleaved ? 2.0 * static_cast<double>(i) / static_cast<double>(width)
                            : half > 1  ? static_cast<double>(i) / static_cast<double>(half - 1)
                                        : 0.0;
    const double frequency = std::pow(10000.0, -exponent);
    for (std::int64_t position = 0; position < table.rows(); ++position) {
      const double angle = static_cast<double>(position) * frequency;
      T* row = table.row(position);
      row[interleaved ? 2 * i : i] = static_cast<T>(std::sin(angle));
      row[interleaved ? 2 * i + 1 : half + i] = static_cast<T>(std::cos(angle));
    }
  }
}

template void fill_sinusoids(PositionEncoding, Tensor<float>);
template void fill_sinusoids(PositionEncoding, Tensor<double>);

}  // namespace heed
