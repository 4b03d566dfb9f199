// Reads one [[route]]. To be included behind "base/toml.hpp".
#pragma once

#include "gateway/config/table_reader.hpp"
#include "gateway/rules/route.hpp"

namespace semel::gateway {

/// Reports each error that the table shows on its own: values, names, patterns, and settings
/// without effect beside the others.
void read_route(TableReader& reader, Route& route);

}  // namespace semel::gateway
