// Reads one [[route]]. To be included behind "base/toml.hpp".
#pragma once

#include "gateway/config/table_reader.hpp"
#include "gateway/rules/route.hpp"

namespace semel::gateway {

/// Reports what is wrong in the table by itself: values, names, patterns, and settings that have no
/// effect beside the others.
void read_route(TableReader& reader, Route& route);

}  // namespace semel::gateway
