#pragma once

#include <cstdint>
#include <exception>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/line_io.h"
#include "heed/dist/communicator.h"
#include "heed/run/translate.h"

namespace heed {

/// One input line with its ids and its output.
struct TranslateLine {
  std::int64_t number = 0;  ///< the line number in the input, from 1
  std::string text, reference;
  // The ids of the pieces of `text` and of `reference`, without </s>.
  std::vector<std::int32_t> source, target;
  // The class whose label is `reference`, if the model is a classifier.
  std::int32_t label = 0;
  // Whether the line must be translated. If false, `output` is already complete, for example for an empty line.
  bool translate = true;
  std::string output;
};

/// The input of `translate`, and with --score its references. Rank 0 reads the lines in chunks, which the ranks share:
/// each translates its own lines of a chunk. All functions without const are collective.
class TranslateInput {
 public:
  /// Opens the input on rank 0. `threads` is the number of threads that translate on each rank, and `on_gpu` tells
  /// whether they do it on a GPU.
  TranslateInput(const TranslateOptions& options, std::istream& in, Communicator& ranks, int threads, bool on_gpu);

  /// Reads the next chunk of lines, which will be translated together, and returns this rank's lines of the chunk in
  /// `lines`. The first chunk has few lines, so that the first translations appear soon; later chunks have up to
  /// --maxi-batch lines for each rank, or fewer when the input pauses or lines are very long. Returns false on all
  /// ranks at the end of the input. An error in the input is kept until rethrow(), after the earlier lines.
  bool read(std::vector<TranslateLine>& lines);
  /// Skips the first `count` lines of the input and its references, but returns the first and the last of them in
  /// `lines`, as read() does. `count` counts on rank 0. `done` is the file that has their translations, for the Error
  /// that says that the input has fewer lines.
  void skip(std::int64_t count, const std::string& done, std::vector<TranslateLine>& lines);
  /// Says that the input ends with an error in line `number`: this line of the chunk and the later ones are not used.
  void end_at(std::int64_t number, const Error& error);

  /// Returns the number of lines of the last chunk on all ranks.
  std::int64_t size() const { return size_; }
  /// Returns whether the last chunk ends with an error.
  bool failed() const { return failed_; }
  /// Throws the error of a chunk that has failed, on rank 0.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

  /// Returns whether a person types the lines.
  bool typed() const { return reader_ && reader_->typed(); }
  /// Returns the fraction of the whole input, 0 to 1, that is translated when the fraction `part`, 0 to 1, of the last
  /// chunk is translated. Returns nothing if the size of the input is unknown.
  std::optional<double> share_done(double part) const;
  /// Logs what was unusual in the input.
  void report(Log& log) const;
  std::string name() const { return input_name(input_); }
  std::string reference_name() const { return input_name(score_); }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{16} << 20;
  // The number of lines per thread in the first chunk, and the greatest number of lines in a chunk unless --maxi-batch
  // says it.
  static constexpr std::size_t kFirstLines = 8, kMostLines = 4000;
  // The same two numbers for a GPU, where they do not depend on the number of threads. A GPU needs thousands of lines
  // to be fully used, and translates them in a fraction of a second.
  static constexpr std::size_t kFirstLinesOnGpu = 2000, kMostLinesOnGpu = 16000;
  // The factor by which the number of lines grows from one chunk to the next.
  static constexpr std::size_t kGrowth = 4;

  void read_lines(std::vector<TranslateLine>& lines);
  /// Leaves each rank the lines that it translates, of the lines that rank 0 has.
  void share_out(std::vector<TranslateLine>& lines);
  /// Copies the lines of rank 0, and whether the input has failed, to all ranks.
  void copy_to_all(std::vector<TranslateLine>& lines);

  Communicator& ranks_;
  std::string input_, score_;
  // Open on rank 0 only.
  std::optional<LineReader> reader_, references_;
  // The greatest number of lines that this chunk, the first and any chunk may have; 0 before the first chunk.
  std::size_t look_ahead_ = 0, first_lines_, most_lines_;
  // The number of the chunk's first line, and the chunk's number of lines.
  std::int64_t first_ = 0, size_ = 0;
  // The fraction of the input that had been read before this chunk, and after it; nothing when unknown.
  std::optional<double> share_before_, share_read_;
  bool failed_ = false;
  std::exception_ptr error_;
};

}  // namespace heed
