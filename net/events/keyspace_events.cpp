#include "net/events/keyspace_events.hpp"

#include <utility>

#include "net/commands/command.hpp"
#include "net/commands/expiry_words.hpp"
#include "net/node/node.hpp"

namespace semel::net {
namespace {

constexpr std::string_view class_letters = "g$lshzxetdnmKE";
constexpr std::uint32_t flag_of(char letter) noexcept {
  return 1U << class_letters.find(letter);
}
constexpr std::uint32_t all_classes = (1U << class_letters.find('n')) - 1;
constexpr std::uint32_t to_keyspace = flag_of('K');
constexpr std::uint32_t to_keyevent = flag_of('E');

bool is_past(const Call& call, const Expiry& expiry) noexcept {
  // Read behind the operation: what has ended since is gone just the same.
  return expiry.mode() == Expiry::Mode::at && expiry.when() <= call.engine.now();
}

bool sets_end(const Expiry& expiry) noexcept {
  return expiry.mode() == Expiry::Mode::at || expiry.mode() == Expiry::Mode::in;
}

void tell_set(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
  if (!outcome.applied) return;
  if (!outcome.found) call.notify('n', "new", op.key);
  call.notify('$', "set", op.key);
  tell_end(call, op.expiry, op.key);
}

void tell_getex(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
  if (!outcome.found) return;
  if (is_past(call, op.expiry)) return call.notify('g', "del", op.key);
  if (sets_end(op.expiry)) return call.notify('g', "expire", op.key);
  if (outcome.applied) call.notify('g', "persist", op.key);
}

bool answers_with_what_was(const StoreOp& op) noexcept {
  return op.get || op.verb == Verb::getdel || op.verb == Verb::getex;
}

void tell_string(Call& call, const StoreOp& op, const StoreOutcome& outcome,
                 std::string_view event);

/// It has set the counter's end unless that was to happen only where there is none.
void tell_increx(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
  if (!outcome.applied) return;
  tell_string(call, op, outcome, op.arithmetic->use_float ? "incrbyfloat" : "incrby");
  if (op.expiry.mode() == Expiry::Mode::clear) return call.notify('g', "persist", op.key);
  if (!op.arithmetic->expiry_only_without_ttl) tell_end(call, op.expiry, op.key);
}

/// Of a command that creates what it does not find.
void tell_string(Call& call, const StoreOp& op, const StoreOutcome& outcome,
                 std::string_view event) {
  if (!outcome.found) call.notify('n', "new", op.key);
  call.notify('$', event, op.key);
}

}  // namespace

KeyspaceEvents::KeyspaceEvents(Engine& engine, PubSub& pubsub) : engine_(engine), pubsub_(pubsub) {
  sink_ = engine_.subscribe_expired([this](const ExpiredEvent& event) { queue(event); });
}

KeyspaceEvents::~KeyspaceEvents() {
  engine_.unsubscribe_expired(sink_);
}

std::optional<std::string> KeyspaceEvents::set_flags(std::string_view letters) {
  std::uint32_t flags = 0;
  for (const char letter : letters) {
    if (letter == 'A') {
      flags |= all_classes;
    } else if (class_letters.find(letter) != std::string_view::npos) {
      flags |= flag_of(letter);
    } else {
      return "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
    }
  }
  const bool is_told = (flags & (to_keyspace | to_keyevent)) != 0;
  letters_.store(flags, std::memory_order_relaxed);               // mo: relaxed: as in any()
  flags_.store(is_told ? flags : 0U, std::memory_order_relaxed);  // mo: relaxed: as in any()
  return std::nullopt;
}

std::string KeyspaceEvents::flags() const {
  const std::uint32_t flags = letters_.load(std::memory_order_relaxed);  // mo: relaxed: as in any()
  std::string text;
  const bool has_all = (flags & all_classes) == all_classes;
  if (has_all) text = "A";
  for (const char letter : class_letters) {
    const bool is_shown = (flags & flag_of(letter)) != 0;
    const bool is_in_all = (all_classes & flag_of(letter)) != 0;
    if (is_shown && letter != 'm' && !(has_all && is_in_all)) text += letter;
  }
  if ((flags & flag_of('m')) != 0) text += 'm';
  return text;
}

bool KeyspaceEvents::wants(char event_class) const noexcept {
  // mo: relaxed: as in any()
  return (flags_.load(std::memory_order_relaxed) & flag_of(event_class)) != 0;
}

void KeyspaceEvents::tell(ClientState* from, char event_class, std::string_view event,
                          std::uint8_t db, std::string_view key) {
  if (!wants(event_class) || !pubsub_.any()) return;
  drain(from);
  publish(from, event, db, key);
}

void KeyspaceEvents::publish(ClientState* from, std::string_view event, std::uint8_t db,
                             std::string_view key) {
  const std::uint32_t flags = flags_.load(std::memory_order_relaxed);  // mo: relaxed: as in any()
  const std::string number = std::to_string(db);
  std::string channel;
  const auto publish_to = [&](std::string_view space, std::string_view name,
                              std::string_view text) {
    channel.assign(space).append(number).append("__:").append(name);
    pubsub_.publish(from, Topic::channel, channel, text);
  };
  if ((flags & to_keyspace) != 0) publish_to("__keyspace@", key, event);
  if ((flags & to_keyevent) != 0) publish_to("__keyevent@", event, key);
}

void KeyspaceEvents::queue(const ExpiredEvent& event) {
  if (!wants('x') || !pubsub_.any()) return;
  const std::lock_guard lock{mutex_};
  if (expired_.size() >= waiting_max || expired_bytes_ + event.key.size() > waiting_bytes_max) {
    lost_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a figure
    return;
  }
  expired_bytes_ += event.key.size();
  expired_.push_back({event.db, std::string{event.key}});
  waiting_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in drain()
}

void KeyspaceEvents::tell_expired(ClientState* from) {
  // Whoever comes meanwhile waits, so that what it tells of a key comes behind the key's end.
  const std::lock_guard telling{telling_};
  std::deque<Expired> taken;
  {
    const std::lock_guard lock{mutex_};
    taken.swap(expired_);
    expired_bytes_ = 0;
  }
  for (const Expired& each : taken) {
    if (wants('x')) publish(from, "expired", each.db, each.key);
  }
  waiting_.fetch_sub(taken.size(), std::memory_order_relaxed);  // mo: relaxed: as in drain()
}

bool Call::tells(char event_class) const noexcept {
  return node.events.wants(event_class);
}

void Call::notify(char event_class, std::string_view event, std::string_view event_key) {
  notify(event_class, event, event_key, client.db);
}

void Call::notify(char event_class, std::string_view event, std::string_view event_key,
                  std::uint8_t db) {
  node.events.tell(&client, event_class, event, db, event_key);
}

void tell_end(Call& call, const Expiry& expiry, std::string_view key) {
  if (!sets_end(expiry)) return;
  call.notify('g', "expire", key);
  // redis-server would find it ended a moment later; here it never came to be.
  if (is_past(call, expiry)) call.notify('x', "expired", key);
}

bool is_told_behind(const Call& call, const StoreOp& op) noexcept {
  if (op.verb == Verb::expire) return !is_past(call, op.expiry);
  return answers_with_what_was(op);
}

void tell_miss(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
  if (outcome.found || (is_write(op.verb) && !answers_with_what_was(op))) return;
  call.notify('m', "keymiss", op.key);
}

void tell_change(Call& call, const StoreOp& op, const StoreOutcome& outcome) {
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
      return tell_set(call, op, outcome);
    case Verb::getdel:
    case Verb::del:
    case Verb::delex:
      return outcome.applied ? call.notify('g', "del", op.key) : void();
    case Verb::getex:
      return tell_getex(call, op, outcome);
    case Verb::append:
      return tell_string(call, op, outcome, "append");
    case Verb::setrange:
      return outcome.applied ? tell_string(call, op, outcome, "setrange") : void();
    case Verb::incr_by:
    case Verb::decr_by:
      return tell_string(call, op, outcome, "incrby");
    case Verb::incr_by_float:
      return tell_string(call, op, outcome, "incrbyfloat");
    case Verb::increx:
      return tell_increx(call, op, outcome);
    case Verb::expire:
      if (!outcome.applied) return;
      return call.notify('g', is_past(call, op.expiry) ? "del" : "expire", op.key);
    case Verb::persist:
      return outcome.applied ? call.notify('g', "persist", op.key) : void();
  }
}

}  // namespace semel::net
