#pragma once

#include <functional>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"

namespace heed {

/// The process around a tool: parses, opens stdin, stdout and the log, runs, and maps exceptions to exit codes
/// (0 done, 1 bad data or failure, 2 usage; a closed pipe ends the process as SIGPIPE does). `output`: the option
/// --output of a tool that has one; `run` writes to that file, which appears whole when it is done, or to stdout.
int tool_main(const ToolInfo& tool, const FieldList& fields, const CommonOptions& common, const std::string* output,
              int argc, char** argv, const std::function<int(std::istream& in, std::ostream& out, Log& log)>& run);

}  // namespace heed
