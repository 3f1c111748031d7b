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

/// The input that a tool's option names: the tool's standard input `in` for "-" and "", otherwise a file.
LineReader open_lines(const std::string& path, std::istream& in, InvalidUtf8 policy);

/// What run_line_pipeline() is given.
struct LineStages {
  /// Appends what a line (number from 1) becomes to `out`. Called from several threads.
  std::function<void(const std::string& line, std::int64_t number, std::string& out)> work;
  /// Takes the output of `lines` lines, in input order, on the calling thread, while others may be at work already.
  std::function<void(const std::string& text, std::int64_t lines)> take;
  /// Takes the same of many chunks of lines at once, where threads can share that work too: `run` calls its argument
  /// once for each thread. Nothing else is at work meanwhile.
  std::function<void(const std::vector<std::string_view>& texts, const RunOnThreads& run)> take_round = {};
  /// Called when the input pauses, or fails, and everything before has been taken: the moment to flush.
  std::function<void()> idle = [] {};
};

/// Runs every line of `reader` through `job` on `threads` threads (0: all) in chunks, a bounded number at a time, so
/// that memory is constant. Errors of lines and of the input are thrown in input order, after the output of the lines
/// before.
void run_line_pipeline(LineReader& reader, int threads, const LineStages& job);

}  // namespace heed
