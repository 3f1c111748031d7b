#pragma once

namespace heed {

/// Before the first kernel: Highway dispatches to nothing better than instruction_set(). UsageError as that has.
void limit_highway_targets();

}  // namespace heed
