// A command that is one operation on one key, in two functions: one plans the operation, the other
// writes the reply. So pipelined commands go to the engine together.
#pragma once

#include "net/commands/command.hpp"

namespace semel::net {

struct Single {
  /// Reads the words into `op`, which is as StoreOp{} is but for db and key. Writes nothing.
  ArgumentError (*plan)(const Call& call, StoreOp& op);
  /// Writes the reply of an outcome without an error.
  void (*answer)(Call& call, const StoreOp& op, const StoreOutcome& outcome);
};

/// Plans, applies and answers. False: `error` says why not, and nothing was written.
[[nodiscard]] bool run_single(Call& call, const Single& single, ArgumentError& error);
/// The reply to an outcome, and the events of its key (net/events/keyspace_events.hpp, by the
/// verb). The writer may take a large value out of `outcome`.
void answer_single(Call& call, const Single& single, const StoreOp& op, StoreOutcome& outcome);

namespace singles {
#define X(name, arity, flags, categories, keys, facts, since, handler, ...)
#define S(name, arity, flags, categories, keys, facts, since, handler, ...) \
  extern const Single handler##_single;
#include "net/commands/command_table.def"
#undef S
#undef X
}  // namespace singles

}  // namespace semel::net
