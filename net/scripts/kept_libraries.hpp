// Libraries of functions that outlive the process of a node, as the program around it keeps them.
#pragma once

#include <string_view>

#include "net/scripts/scripts.hpp"
#include "net/time/ticks.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Loads the libraries of a payload of FUNCTION DUMP in place of all that are there. Errors:
/// storage_damaged (it is none), bad_option (a library cannot be loaded, or the setting scripts
/// lets none in); the detail is a clause, and nothing has changed.
[[nodiscard]] Status load_libraries(Scripts& scripts, const TickSource& ticks,
                                    std::string_view dump);

}  // namespace semel::net
