// What the commands of lists, sets, sorted sets and streams share: one step on an object, with its
// errors and events.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "engine/object_api/object_calls.hpp"
#include "net/commands/command.hpp"

namespace semel::net {

/// Writes a reply from the object at `key`, or, if there is none, from one without elements.
/// `write(const engine::ObjectReader&)` is called once. On an error, the error is the reply.
template <class Write>
void read_object(Call& call, Bytes key, Kind kind, Write&& write) {
  const std::size_t begin = call.reply.size();
  const Status done =
      engine::read_object(call.engine, {call.client.db, key}, kind, std::forward<Write>(write));
  if (done) return;
  call.reply.take_back(begin);
  call.fail(done.error());
}

/// `change(engine::ObjectEdit&) -> ErrorCode` as engine::change_object() has it. None: the error is
/// the reply. Publishes the event of a new key; those of the command and, if the key is gone,
/// notify_removed() are the caller's, in redis-server's order.
template <class Change>
[[nodiscard]] std::optional<engine::ObjectChange> change_object(Call& call, Bytes key, Kind kind,
                                                                Change&& change) {
  const auto done =
      engine::change_object(call.engine, {call.client.db, key}, kind, std::forward<Change>(change));
  if (!done.ok()) {
    call.fail(done.error());
    return std::nullopt;
  }
  if (done->is_new()) call.notify('n', "new", key);
  return *done;
}

/// The event of a key whose last element is gone, behind the event that took it.
inline void notify_removed(Call& call, Bytes key, const engine::ObjectChange& change) {
  if (change.is_gone()) call.notify('g', "del", key);
}

/// The event of a lookup that missed.
inline void notify_miss(Call& call, Bytes key) {
  if (!call.notifies('m')) return;
  const auto there = call.engine.store(call.client.db).exists(key);
  if (there.ok() && !*there) call.notify('m', "keymiss", key);
}

}  // namespace semel::net
