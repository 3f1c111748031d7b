#include "heed/run/tool_main.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <memory>
#include <new>
#include <thread>

#include "heed/base/error.h"
#include "heed/base/signals.h"
#include "heed/base/streams.h"
#include "heed/base/terminal.h"
#include "heed/dist/communicator.h"

namespace heed {
namespace {

/// Returns which messages a log has. --quiet is about the terminal: a file of --log has all of them.
Verbosity verbosity(const CommonOptions& common) {
  return common.quiet && common.log.empty() ? Verbosity::quiet
         : common.verbose                   ? Verbosity::verbose
                                            : Verbosity::normal;
}

/// Ends the process as SIGPIPE does by default, even when the parent process has made this process ignore SIGPIPE.
int end_by_sigpipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  return 128 + SIGPIPE;
}

/// Returns whether `fd` is a terminal on which a status line can be erased and written again.
bool shows_status_lines(int fd) {
  const TerminalEnvironment environment = TerminalEnvironment::of(fd);
  return environment.terminal && environment.term != "dumb";
}

}  // namespace

int tool_main(const ToolInfo& tool, FieldList& fields, const CommonOptions& common, const std::string* output, int argc,
              char** argv, const std::function<int(std::istream&, std::ostream&, Log&)>& run,
              const bool* run_opens_output) {
  const std::string name(tool.name);
  const auto complain = [&](const std::string& what, int code) {
    const int rank = tool.has_ranks ? launched_rank() : 0;
    std::cerr << name << ": " << (rank == 0 ? "" : "rank " + std::to_string(rank) + ": ") << what << '\n';
    return code;
  };
  try {
    open_closed_standard_streams();
    remove_temporary_files_on_signals();
    std::vector<std::string> arguments(argv + 1, argv + argc);
    {
      OutputFile help("-");
      if (!parse_command_line(tool, fields, std::move(arguments), help.stream())) {
        help.commit();
        return 0;
      }
    }
    std::ofstream log_file;
    if (!common.log.empty()) {
      log_file.open(common.log, std::ios::app);
      if (!log_file) throw Error(Position{common.log}, "cannot open the log for writing: " + errno_text());
    }
    Log log(common.log.empty() ? std::cerr : log_file, name, verbosity(common),
            common.log.empty() && shows_status_lines(STDERR_FILENO) ? STDERR_FILENO : -1);
    const auto in = open_input("-");
    const bool opens = (!tool.has_ranks || launched_rank() == 0) && !(run_opens_output && *run_opens_output);
    const std::string path = opens && output && !output->empty() ? *output : "-";
    OutputFile out(path);
    if (log.terminal() && path == "-" && ::isatty(STDOUT_FILENO) == 1)
      out.watch([&log](std::string_view data) { log.before_data(data); });
    const int code = run(*in, out.stream(), log);
    out.commit();
    return code;
  } catch (const ClosedPipe&) {
    return end_by_sigpipe();
  } catch (const OtherRankFailed&) {
    return 0;
  } catch (const UsageError& error) {
    // Ranks have the same command line, so that one of them is enough to complain. The others end later, because a
    // launcher may kill all processes when the first one has ended.
    if (!tool.has_ranks || launched_rank() == 0) return complain(error.what(), UsageError::exit_code);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return UsageError::exit_code;
  } catch (const Error& error) {
    return complain(error.what(), Error::exit_code);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", Error::exit_code);
  } catch (const std::exception& error) {
    return complain(error.what(), Error::exit_code);
  }
}

}  // namespace heed
