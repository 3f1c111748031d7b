#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/config/command_line.h"

namespace heed {

/// The lines `name = value` of a configuration file. The names are those of the options on the command line, written
/// with `_` or with `-`. The items of a list are on one line, with spaces between them, or on several lines; a value
/// may stand in double quotes. Lines `[section]` and lines that begin with # or ; have no meaning. Each function throws
/// UsageError, with the line's number, for a line that is wrong.
class ConfigFile {
 public:
  /// Reads the file, once, since it may be a pipe. Throws Error when the file cannot be read.
  explicit ConfigFile(const std::string& path);

  /// Returns whether the file begins with a byte-order mark.
  bool marked() const { return marked_; }
  /// Gives the selecting field of `fields` (FieldInfo::selects) the last of its values in the file, if there is one,
  /// and lists the fields anew.
  void select(FieldList& fields) const;
  /// Sets the options that the file names, except the selecting field: its value is checked and the field is marked as
  /// given, but the value stays, because `fields` is the list for that value.
  void apply(const ToolInfo& tool, const FieldList& fields) const;

 private:
  struct Line {
    std::int64_t number;
    std::string name;   ///< with `-` instead of `_`
    std::string value;  ///< the part of the line behind `=`
  };

  std::string path_;
  bool marked_ = false;
  std::vector<Line> lines_;
};

/// Returns all options with their present values as text that ConfigFile can read. Leaves out the fields that have the
/// default that the selecting field decides (FieldInfo::preset).
std::string dump_config(const FieldList& fields);

}  // namespace heed
