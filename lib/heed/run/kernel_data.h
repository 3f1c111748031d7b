#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "heed/base/line_io.h"

namespace heed {

/// The training data of a regression: pairs of a key x[i] and a value y[i].
struct NumberPairs {
  std::vector<double> x, y;
  std::size_t size() const { return x.size(); }
};

/// Reads pairs from lines "x TAB y" until the end of the input. Throws Error, with the line and the column, for a line
/// that is not two numbers with a TAB between them, and for an input without lines.
NumberPairs read_pairs(LineReader& reader);

/// Reads a line that is one number. Returns nothing at the end of the input. Throws Error, with the line and the
/// column, for a line that is not a number.
std::optional<double> read_number(LineReader& reader);

/// The pairs of the textbook's example have an x from 0 to this number.
inline constexpr double kExampleEnd = 5;

/// Returns 2 sin(x) + x^0.8, the function of the textbook's example (Zhang et al., Dive into Deep Learning, "Attention
/// Pooling"). The result is not a number for x < 0.
double example_function(double x);

/// Makes the pairs of the textbook's example: x is uniform in [0, 5) and ascends, and y is example_function(x) plus a
/// normal random number with mean 0 and standard deviation `noise`.
NumberPairs make_example_pairs(std::size_t count, double noise, std::uint64_t seed);

}  // namespace heed
