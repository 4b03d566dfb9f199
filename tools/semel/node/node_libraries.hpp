// The libraries of functions of a node with a storage: the file `functions` in its directory, a
// payload of FUNCTION DUMP.
#pragma once

#include <string>

#include "net/node/node.hpp"
#include "semel/result.hpp"

namespace semel::tool {

/// Its name in the directory of the storage.
inline constexpr char libraries_file[] = "functions";

/// Loads the file, if it is there, and replaces it with each change of the libraries from then on,
/// before the change is answered. Before the first connection. Errors: storage_failed,
/// storage_damaged, bad_option (they cannot be loaded); the detail is the whole text.
[[nodiscard]] Status keep_libraries(net::Node& node, const std::string& directory);

}  // namespace semel::tool
