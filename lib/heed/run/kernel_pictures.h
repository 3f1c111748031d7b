#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/inspect/attention_map.h"
#include "heed/inspect/plot.h"
#include "heed/run/kernel_data.h"

namespace heed {

/// One way of pooling: its name, and a function that fills the attention weights of a query for the given keys and
/// returns false where all weights are 0.
struct Pooling {
  std::string name;   ///< name of the column, such as "gaussian"
  std::string title;  ///< name for pictures, such as "Gaussian kernel, bandwidth 1"
  std::function<bool(double query, std::span<const double> keys, std::span<double> weights)> weights;

  /// Returns the prediction for a query, the weighted sum of the pairs' y; not a number where all weights are 0. The
  /// weights are left in `space`.
  double predict(double query, const NumberPairs& pairs, std::vector<double>& space) const;
};

/// Returns the plot of the fit: the pairs as points, the example function if `truth`, and one curve for each pooling,
/// over the range of the pairs and the queries.
Plot fit_plot(const NumberPairs& pairs, std::span<const double> queries, std::span<const Pooling> poolings, bool truth);

/// Returns the attention weights of each pooling as a map with axes: one row for each query and one column for each
/// pair, in ascending order. Where there are more than `most_rows` queries or `most_columns` pairs, the same number of
/// neighbours share each row or column (the last one may have fewer), which shows the mean of their weights.
std::vector<AttentionMap> weight_maps(const NumberPairs& pairs, std::span<const double> queries,
                                      std::span<const Pooling> poolings, std::size_t most_rows,
                                      std::size_t most_columns);

}  // namespace heed
