#pragma once

#include <functional>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"

namespace heed {

/// Runs a program: parses the command line, opens stdin, stdout and the log, calls `run`, and returns the exit code: 0
/// done, 1 bad data or failure, 2 wrong usage. A closed pipe ends the process as SIGPIPE would. `output` points to the
/// value of the option --output, or is null when the program has no such option. `run` writes to the file --output,
/// which appears under its name only when it is complete, or to stdout. Where `run_opens_output` points to true, which
/// an option may have set, `run` opens the file itself.
int tool_main(const ToolInfo& tool, FieldList& fields, const CommonOptions& common, const std::string* output, int argc,
              char** argv, const std::function<int(std::istream& in, std::ostream& out, Log& log)>& run,
              const bool* run_opens_output = nullptr);

}  // namespace heed
