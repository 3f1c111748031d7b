#pragma once

#include <string>

#include "heed/config/command_line.h"

namespace heed {

/// Sets fields from a file of lines `name = value`. A name is that of the command line, with `_` or `-`; a list has its
/// items on one line, with spaces between them, or on several; a value may stand in double quotes. Lines `[section]`
/// and those that begin with # or ; have no meaning. Returns whether the file begins with a byte-order mark. Throws
/// UsageError with the line, Error for a file that cannot be read.
bool read_config_file(const ToolInfo& tool, const FieldList& fields, const std::string& path);

/// All fields with their values in that form.
std::string dump_config(const FieldList& fields);

}  // namespace heed
