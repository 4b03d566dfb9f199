// The locks of Redisson: a hash with a count of holds for each owner. Each returns false only
// before anything was written or changed. Calls are numbered in the order of the script's text.
#pragma once

#include "net/scripts/native_run.hpp"

namespace semel::net {

[[nodiscard]] bool hold_reentrant(NativeRun& run);
[[nodiscard]] bool hold_fenced(NativeRun& run);
[[nodiscard]] bool release_reentrant(NativeRun& run);
[[nodiscard]] bool release_spinning(NativeRun& run);
[[nodiscard]] bool release_by_force(NativeRun& run);
[[nodiscard]] bool renew_reentrant(NativeRun& run);
[[nodiscard]] bool renew_many(NativeRun& run);

}  // namespace semel::net
