#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// Machines that train together, one rank on each, and the network between them.
struct Cluster {
  int nodes = 1;
  double bandwidth = 0;  ///< bytes a second that a machine sends while it receives at the same speed
  double latency = 0;    ///< seconds that a short message takes

  /// Reads a description such as "nodes=16,bandwidth=25G,latency=5us": bandwidth in bits a second, with K, M, G or T
  /// for 10^3 ... 10^12; latency in s, ms, us or ns. Throws UsageError, naming `option`, where one is missing or wrong.
  static Cluster parse(const std::string& option, const std::string& text);

  /// Returns how many seconds an update waits for the network on `ranks` machines. `bytes` is the size in bytes of one
  /// array of all gradients, and `sums` is the number of gradient sums that each rank sends. In an update, each rank
  /// sends to every other rank that rank's slice of each sum; then each rank sends its slice of the new parameters; and
  /// all ranks agree on some numbers, such as the loss.
  double exchange_seconds(int ranks, double sums, double bytes) const;
};

}  // namespace heed
