#pragma once

#include <string>

#include "heed/config/command_line.h"

namespace heed {

/// Sets options from a configuration file with lines `name = value`. The names are those of the options on the command
/// line, written with `_` or with `-`. The items of a list are on one line, with spaces between them, or on several
/// lines; a value may stand in double quotes. Lines `[section]` and lines that begin with # or ; have no meaning.
/// Returns whether the file begins with a byte-order mark. Throws UsageError, with the line's number, for a line that
/// is wrong, and Error when the file cannot be read.
bool read_config_file(const ToolInfo& tool, const FieldList& fields, const std::string& path);

/// Returns all options with their present values as a configuration file that read_config_file() can read.
std::string dump_config(const FieldList& fields);

}  // namespace heed
