#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <istream>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"
#include "heed/dist/communicator.h"

namespace heed {

/// A process among the ranks: rank 0 has the log and the output, the others are silent.
struct Rank {
  Rank(Communicator& all, std::ostream& first_out, Log& first_log)
      : ranks(all), out(all.rank() == 0 ? first_out : nowhere), log(all.rank() == 0 ? first_log : silent) {}

  Communicator& ranks;
  std::ofstream nowhere;
  Log silent{nowhere, "", Verbosity::quiet};
  std::ostream& out;
  Log& log;
};

/// Returns the names of the machines of all ranks.
std::vector<std::string> hosts_of(Communicator& ranks);

/// Throws Error on rank 0 where the result of `describe`, which describes this rank's work in lines, is not the same on
/// all ranks, and says what is different. `does` is the work in one word, such as "trains".
void check_same(Communicator& ranks, std::string_view does, const std::function<std::string()>& describe);

/// Describes the program and all options that ranks must have in common, one on each line. `all` are the tool's options
/// and `common` those that every tool has, which may differ; so may --threads.
std::string describe_options(const FieldList& all, const FieldList& common);

/// A stream buffer that gives all ranks the text of a stream that only rank 0 can read: launchers give standard input
/// to rank 0 alone. Rank 0 reads the text in blocks of 1 MiB and sends each block to all ranks, so that a rank holds
/// one block at a time. Reading is collective: all ranks must read the text in the same way. An error of the stream is
/// thrown on all ranks.
class SharedInput : public std::streambuf {
 public:
  /// `in` is read on rank 0 only.
  SharedInput(Communicator& ranks, std::istream& in) : ranks_(ranks), in_(in) {}

 protected:
  int_type underflow() override;

 private:
  Communicator& ranks_;
  std::istream& in_;
  std::string block_;
};

/// Warns if the ranks compute on processors of different kinds; `own` is this rank's (see processor_name()).
void warn_of_different_processors(Communicator& ranks, const std::string& own, Log& log);

}  // namespace heed
