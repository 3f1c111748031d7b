#pragma once

#include <string>
#include <string_view>

#include "heed/config/command_line.h"

namespace heed {

/// Returns whether `name` is an option that every tool has and that is about the command line itself: help, version,
/// config or dump-config.
bool is_built_in(std::string_view name);

/// Returns the entry of tool.peers (the known options of other toolkits) whose name is `name`, without dashes, or
/// nullptr when no entry has this name.
const PeerOption* find_peer_option(const ToolInfo& tool, std::string_view name);

/// Throws a UsageError for `option` (with its dashes), which is not in `fields`. If the tool has the option under other
/// values of the selecting field, the message names these values. Otherwise the message suggests an option that the
/// user may have meant. Searched are, in this order: an option of another toolkit with this name, options that begin
/// with this name, options that contain its words (--heads: --transformer-heads), and options that differ in few
/// letters. If there is a selecting field, the fields that depend on it lose their values.
[[noreturn]] void fail_unknown_option(const ToolInfo& tool, const FieldList& fields, const std::string& option);

}  // namespace heed
