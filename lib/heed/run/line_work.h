#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "heed/base/line_io.h"

namespace heed {

/// What work_on_lines() is given.
struct LineWork {
  /// Appends what a line (number from 1) becomes to `out`. Called from several threads.
  std::function<void(const std::string& line, std::int64_t number, std::string& out)> work;
  /// Takes the output of `lines` lines, in input order, on the calling thread.
  std::function<void(const std::string& text, std::int64_t lines)> take;
  /// Called when the input pauses, or fails, and everything before has been taken: the moment to flush.
  std::function<void()> idle = [] {};
};

/// Runs every line of `reader` through `job` on `threads` threads (0: all) in rounds of bounded size, so that memory is
/// constant. Errors of lines and of the input are thrown in input order, after the
/// output of the lines before.
void work_on_lines(LineReader& reader, int threads, const LineWork& job);

}  // namespace heed
