#pragma once

#include <string>
#include <string_view>

#include "heed/config/command_line.h"

namespace heed {

/// Whether `name` is an option about the command line itself, which every tool has: --help, --config and others.
bool is_built_in(std::string_view name);

/// The entry of tool.peers with this name (without dashes); nullptr where there is none.
const PeerOption* find_peer_option(const ToolInfo& tool, std::string_view name);

/// Throws the UsageError for `option` (with its dashes), which the tool does not have. The message names the option for
/// it that the tool has. It is looked for, in this order, as another toolkit's option, as the beginning of a name, as
/// parts of a name (--heads: --transformer-heads), and as a name with wrong letters.
[[noreturn]] void fail_unknown_option(const ToolInfo& tool, const FieldList& fields, const std::string& option);

}  // namespace heed
