#include "heed/run/peer_options.h"

namespace heed {

std::span<const PeerOption> kernel_regression_peer_options() {
  static constexpr PeerOption options[] = {
      {"kernel", "pooling", "R"},
      {"method", "pooling", "scikit-learn"},
      {"ckertype", "pooling", "np"},
      {"bw", "bandwidth", "statsmodels"},
      {"bws", "bandwidth", "np"},
      {"sigma", "bandwidth", "d2l"},
      {"x-points", "queries", "R"},
      {"exdat", "queries", "np"},
      {"range-x", "from", "R"},
      {"n-points", "steps", "R"},
      {"gridsize", "steps", "KernSmooth"},
      {"n-train", "points", "d2l"},
      {"num-epochs", "epochs", "d2l"},
      {"lr", "learn-rate", "PyTorch"},
      {"momentum", "optimizer-params", "PyTorch"},
      {"reg-type", "", "statsmodels", "the regression is local-constant"},
      {"degree", "", "KernSmooth", "the regression is local-constant"},
  };
  return options;
}

}  // namespace heed
