#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/line_io.h"
#include "heed/base/ordered_pipeline.h"

namespace heed {

/// The functions that run_line_pipeline() calls.
struct LineStages {
  /// Appends the output for one input line to `out`. `number` is the line number, from 1. Called on several threads at
  /// once. A LineError gets the file and the number of the line.
  std::function<void(const std::string& line, std::int64_t number, std::string& out)> work;
  /// Receives the output of `lines` input lines, in input order, on the thread that called run_line_pipeline(), while
  /// other threads may work on later lines.
  std::function<void(const std::string& text, std::int64_t lines)> take;
  /// Receives the outputs of many chunks of lines at once. The function can share its work among all threads: run(f)
  /// calls f once on each thread. No other function of LineStages runs meanwhile.
  std::function<void(const std::vector<std::string_view>& texts, const RunOnThreads& run)> take_round = {};
  /// Called when the input pauses or fails and `take` has received all earlier output, so that the program can flush
  /// `out`.
  std::function<void()> idle = [] {};
};

/// Calls `job.work` for every line of `reader` on `threads` threads (0: one for each processor). A bounded number of
/// chunks of lines is in memory at any time. An error in a line or in the input is thrown after the output of all
/// earlier lines has been taken.
void run_line_pipeline(LineReader& reader, int threads, const LineStages& job);

}  // namespace heed
