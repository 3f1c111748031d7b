#include "heed/run/tool_main.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <new>
#include <thread>
#include <vector>

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

/// A file that an option names.
struct OptionFile {
  std::string option, path;
  FileUse use;
};

/// Returns the files that the options name, without standard input and output. Throws UsageError where the user gives
/// an empty name, such as that of a variable of the shell that is not set.
std::vector<OptionFile> files_of(const FieldList& fields) {
  std::vector<OptionFile> out;
  for (const Field& field : fields.all()) {
    if (field.info.file == FileUse::none) continue;
    const std::string option = field.info.positional ? "an input"
                               : field.info.letter   ? std::string("-") + field.info.letter
                                                     : "--" + std::string(field.info.name);
    for (const std::string& path : field.get_text()) {
      if (path.empty() && field.given) throw UsageError(option + ": the name of the file is empty (name a file)");
      if (!path.empty() && path != "-") out.push_back({option, path, field.info.file});
    }
  }
  if (const std::string& config = fields.config_file(); !config.empty() && config != "-")
    out.push_back({"--config", config, FileUse::read});
  return out;
}

/// Throws UsageError where a file that the program writes is also another file of its options, and where the name of a
/// log says that the log is compressed. If this process `writes` the files, throws Error where one cannot appear, which
/// the program would otherwise notice at its end.
void check_files(const ToolInfo& tool, const FieldList& fields, bool writes) {
  const std::vector<OptionFile> files = files_of(fields);
  for (const OptionFile& written : files) {
    if (written.use == FileUse::read || is_special(written.path)) continue;
    if (const std::string ending(compressed_ending(written.path)); written.use == FileUse::appended && !ending.empty())
      throw UsageError(written.option + " " + written.path + ": messages are not compressed (take " + ending +
                       " off the name)");
    for (const OptionFile& other : files)
      if (&other != &written && is_same_path(written.path, other.path))
        throw UsageError(written.option + " " + written.path + ": is also the file of " + other.option +
                         ", and one would spoil the other (name another file)");
    if (writes && written.use == FileUse::written) check_writable(written.path);
  }
  for (const OptionFile& file : files) {
    const std::string further = tool.further_file ? tool.further_file(fields, file.path) : "";
    if (!further.empty())
      throw UsageError(file.option + " " + file.path + ": is also " + further +
                       ", and one would spoil the other (name another file)");
  }
}

}  // namespace

int tool_main(const ToolInfo& tool, FieldList& fields, const CommonOptions& common, const std::string* output, int argc,
              char** argv, const std::function<int(std::istream&, std::ostream&, Log&)>& run,
              const bool* run_opens_output) {
  const std::string name(tool.name);
  std::unique_ptr<std::ostream> log_file;
  // An error is written to stderr in any case: a script that has a log may not show the log.
  const auto complain = [&](const std::string& what, int code) {
    const int rank = tool.has_ranks ? launched_rank() : 0;
    const std::string line = name + ": " + (rank == 0 ? "" : "rank " + std::to_string(rank) + ": ") + what + '\n';
    std::cerr << line;
    try {
      if (log_file) *log_file << line << std::flush;
    } catch (const Error&) {  // the log has said so when it could not be written first
    }
    return code;
  };
  try {
    open_closed_standard_streams();
    remove_temporary_files_on_signals();
    std::vector<std::string> arguments(argv + 1, argv + argc);
    const bool writes = !tool.has_ranks || launched_rank() == 0;
    {
      OutputFile help(writes ? "-" : "/dev/null");
      if (!parse_command_line(tool, fields, std::move(arguments), help.stream())) {
        help.commit();
        return 0;
      }
    }
    check_files(tool, fields, writes);
    if (!common.log.empty()) log_file = open_for_appending(common.log);
    Log log(log_file ? *log_file : std::cerr, name, verbosity(common),
            !log_file && shows_status_lines(STDERR_FILENO) ? STDERR_FILENO : -1);
    const auto in = open_input("-");
    const bool opens = writes && !(run_opens_output && *run_opens_output);
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
    const std::string advice(tool.saves_memory);
    return complain("out of memory" + (advice.empty() ? "" : " (" + advice + ")"), Error::exit_code);
  } catch (const std::exception& error) {
    return complain(error.what(), Error::exit_code);
  }
}

}  // namespace heed
