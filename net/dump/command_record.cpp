// A record as a whole: what a script of a group has made of an object
// (net/scripts/script_trial.hpp).
#include <algorithm>
#include <optional>

#include "engine/object_api/whole_record.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"

namespace semel::net::handlers {

namespace {

std::optional<Kind> carried_kind_of(std::string_view name) {
  const auto kinds = record_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](Kind kind) {
    return engine::is_carried(kind) && name_of(kind) == name;
  });
  return found == kinds.end() ? std::nullopt : std::optional{*found};
}

}  // namespace

/// Words: key, kind, end in ms of the group's time or -1, bytes. Unsound bytes are an
/// error on every node alike.
void semel_putrecord(Call& call) {
  if (!call.context().applies_log()) return call.fail(log_error(call));
  const auto kind = carried_kind_of(call.args[2]);
  const auto end = integer_of(call.args[3]);
  if (!kind || !end || *end < -1) return call.fail_syntax();
  const engine::WholeRecord record{.kind = *kind,
                                   .due = *end == -1 ? no_end : Timestamp{Millis{*end}},
                                   .value = std::string{call.args[4]}};
  const Status done = engine::replace_whole(call.engine, {call.client.db, call.key()}, record);
  if (!done) return call.fail(done.error());
  call.notify('g', "restore", call.key());
  call.reply.ok();
}

}  // namespace semel::net::handlers
