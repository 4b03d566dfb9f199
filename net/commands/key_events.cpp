#include "net/commands/key_events.hpp"

#include "net/events/keyspace_events.hpp"

namespace semel::net {
namespace {

bool is_past(const Call& call, const Expiry& expiry) noexcept {
  // Read after the operation: a key that has expired since counts as gone.
  return expiry.mode() == Expiry::Mode::at && expiry.when() <= call.engine.now();
}

bool sets_end(const Expiry& expiry) noexcept {
  return expiry.mode() == Expiry::Mode::at || expiry.mode() == Expiry::Mode::in;
}

void notify_set(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
  if (!outcome.applied) return;
  if (!outcome.found) call.notify('n', "new", op.key);
  call.notify('$', "set", op.key);
  notify_expiry(call, op.expiry, op.key);
}

void notify_getex(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
  if (!outcome.found) return;
  if (is_past(call, op.expiry)) return call.notify('g', "del", op.key);
  if (sets_end(op.expiry)) return call.notify('g', "expire", op.key);
  if (outcome.applied) call.notify('g', "persist", op.key);
}

bool answers_with_what_was(const StoreOp& op) noexcept {
  return op.get || op.verb == Verb::getdel || op.verb == Verb::getex;
}

void notify_string(Call& call, const StoreOp& op, const StoreOutcome& outcome,
                   std::string_view event);

/// It has set the counter's end unless that was to happen only where there is none.
void notify_increx(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
  if (!outcome.applied) return;
  notify_string(call, op, outcome, op.arithmetic->use_float ? "incrbyfloat" : "incrby");
  if (op.expiry.mode() == Expiry::Mode::clear) return call.notify('g', "persist", op.key);
  if (!op.arithmetic->expiry_only_without_ttl) notify_expiry(call, op.expiry, op.key);
}

/// Of a command that creates what it does not find.
void notify_string(Call& call, const StoreOp& op, const StoreOutcome& outcome,
                   std::string_view event) {
  if (!outcome.found) call.notify('n', "new", op.key);
  call.notify('$', event, op.key);
}

}  // namespace

bool Call::notifies(char event_class) const noexcept {
  return !context().is_trial() && services.events.wants(event_class);
}

void Call::notify(char event_class, std::string_view event, std::string_view event_key) {
  notify(event_class, event, event_key, client.db);
}

void Call::notify(char event_class, std::string_view event, std::string_view event_key,
                  std::uint8_t db) {
  if (context().is_trial()) return;
  services.events.notify(&client, event_class, event, db, event_key);
}

void notify_expiry(Call& call, const Expiry& expiry, std::string_view key) {
  if (!sets_end(expiry)) return;
  call.notify('g', "expire", key);
  // redis-server would find it ended a moment later; here it never came to be.
  if (is_past(call, expiry)) call.notify('x', "expired", key);
}

bool is_notified_after_reply(const Call& call, const StoreOp& op) noexcept {
  if (op.verb == Verb::expire) return !is_past(call, op.expiry);
  return answers_with_what_was(op);
}

void notify_miss(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
  if (outcome.found || (is_write(op.verb) && !answers_with_what_was(op))) return;
  call.notify('m', "keymiss", op.key);
}

void notify_change(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
  switch (op.verb) {
    case Verb::get:
    case Verb::exists:
    case Verb::type:
    case Verb::strlen:
    case Verb::getrange:
    case Verb::digest:
    case Verb::expire_time:
      return;
    case Verb::set:
      return notify_set(call, op, outcome);
    case Verb::getdel:
    case Verb::del:
    case Verb::delex:
      return outcome.applied ? call.notify('g', "del", op.key) : void();
    case Verb::getex:
      return notify_getex(call, op, outcome);
    case Verb::append:
      return notify_string(call, op, outcome, "append");
    case Verb::setrange:
      return outcome.applied ? notify_string(call, op, outcome, "setrange") : void();
    case Verb::incr_by:
    case Verb::decr_by:
      return notify_string(call, op, outcome, "incrby");
    case Verb::incr_by_float:
      return notify_string(call, op, outcome, "incrbyfloat");
    case Verb::increx:
      return notify_increx(call, op, outcome);
    case Verb::expire:
      if (!outcome.applied) return;
      return call.notify('g', is_past(call, op.expiry) ? "del" : "expire", op.key);
    case Verb::persist:
      return outcome.applied ? call.notify('g', "persist", op.key) : void();
  }
}

}  // namespace semel::net
