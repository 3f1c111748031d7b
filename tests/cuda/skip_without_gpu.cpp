#include <cstdlib>
#include <iostream>

#include "heed/tensor/cuda_device.h"

namespace {

/// Ends the program before its first test where this machine has no GPU, with the reason.
[[maybe_unused]] const bool has_gpu = [] {
  const heed::GpuSurvey survey = heed::survey_gpus();
  if (survey.count > 0) return true;
  std::cout << "skipped: " << survey.why_none << '\n';
  std::exit(0);
}();

}  // namespace
