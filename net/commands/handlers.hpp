// Every handler that a row of the table names.
#pragma once

#include "net/commands/command.hpp"

namespace semel::net::handlers {

#define X(name, arity, flags, categories, keys, facts, since, handler, ...) \
  void handler(Call& call);
#define S X
#include "net/commands/command_table.def"
#undef S
#undef X

}  // namespace semel::net::handlers
