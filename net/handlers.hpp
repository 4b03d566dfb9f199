// Every handler that a row of the table names.
#pragma once

#include "net/command.hpp"

namespace semel::net::handlers {

#define X(name, arity, flags, first, last, step, since, handler) void handler(Call& call);
#include "net/command_table.def"
#undef X

}  // namespace semel::net::handlers
