// A command that takes from the first of its keys that has something, and keeps its client waiting
// while none has.
//
// The wait ends on the thread that changed a key, when its command has been finished, with a reply
// left at the client's handle. If the client has gone by then, what it was to get is put back.
#pragma once

#include <span>
#include <string_view>

#include "net/commands/command.hpp"
#include "net/objects/taking.hpp"

namespace semel::net {

/// Takes or begins to wait; `timeout` 0: for ever. Within a transaction or a script, and in an
/// entry of a group's log, it replies that there is nothing instead.
void take_or_wait(Call& call, std::span<const std::string_view> keys, Millis timeout,
                  Taking& taking);
void take_or_wait(Call& call, std::span<const std::string_view> keys, Millis timeout,
                  const ListTaking& what);
void take_or_wait(Call& call, std::span<const std::string_view> keys, Millis timeout,
                  const SortedTaking& what);
/// The element stays moved if the reply is not read.
void move_or_wait(Call& call, Millis timeout, const ListMove& move);

}  // namespace semel::net
