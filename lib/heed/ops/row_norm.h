#pragma once

namespace heed {

/// The normalisations that need the statistics of one row only. `layer`: layer normalisation (Ba et al. 2016). `rms`:
/// root mean square normalisation (Zhang and Sennrich 2019), which does not subtract the mean and has no bias.
enum class RowNorm { layer, rms };

}  // namespace heed
