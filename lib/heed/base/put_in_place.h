#pragma once

#include <string>

namespace heed {

/// Flushes the complete file `temporary` to the disk, renames it to `target`, and flushes the folder. Throws Error,
/// which calls the file `name`.
void put_in_place(const std::string& temporary, const std::string& target, const std::string& name);

}  // namespace heed
