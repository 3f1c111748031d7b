#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "heed/base/streams.h"

namespace heed {

/// The output of a job that can be continued after it was killed (--resume). The job writes to the file FILE.partial,
/// which is renamed to the output FILE when the output is complete.
///
/// With n-best lists, each input line has a group of output lines, which begin with the line's number, from 0, and
/// " ||| ". As nothing says where the last group ends, the last group counts as incomplete.
class PartialOutput {
 public:
  /// Opens or creates FILE.partial, where FILE is `path`, and finds the end of the complete output in it. Throws Error
  /// if the file cannot be opened, if another process is writing it, or if `n_best` is true and the file is not an
  /// n-best list.
  PartialOutput(const std::string& path, bool n_best);

  /// Returns the number of input lines whose output is complete.
  std::int64_t done() const { return done_; }
  /// Returns the output of the first and of the last of these lines.
  const std::string& first_output() const { return first_; }
  const std::string& last_output() const { return last_; }
  const std::string& name() const { return name_; }

  /// Cuts off what follows the complete output, and goes on writing there.
  void cut();
  /// Returns the stream to write the output to, after cut().
  std::ostream& stream() { return stream_; }
  /// Renames the complete file to FILE.
  void commit();

 private:
  void measure(bool n_best);

  std::string path_, target_, name_;
  std::optional<FdStreamBuf> buffer_;
  std::ostream stream_{nullptr};
  std::int64_t done_ = 0, size_ = 0;
  std::string first_, last_;
};

/// Returns the name of the file that holds the output of a job of --resume until it is complete: FILE.partial, where
/// FILE is `path`, or where `path` leads to as a link.
std::string partial_file(const std::string& path);

/// Returns whether the regular file `path` exists. PartialOutput gives a file this name only when the output is
/// complete, so that the job is then finished.
bool is_complete(const std::string& path);

}  // namespace heed
