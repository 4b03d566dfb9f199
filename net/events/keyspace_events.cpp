#include "net/events/keyspace_events.hpp"

#include <utility>

#include "base/assert.hpp"

namespace semel::net {
namespace {

constexpr std::string_view class_letters = "g$lshzxetdnmKE";
constexpr std::uint32_t flag_of(char letter) noexcept {
  return 1U << class_letters.find(letter);
}
constexpr std::uint32_t all_classes = (1U << class_letters.find('n')) - 1;
constexpr std::uint32_t to_keyspace = flag_of('K');
constexpr std::uint32_t to_keyevent = flag_of('E');

}  // namespace

KeyspaceEvents::KeyspaceEvents(Engine& engine, PubSub& pubsub) : engine_(engine), pubsub_(pubsub) {
  sink_ = engine_.subscribe_expired([this](const ExpiredEvent& event) { queue(event); });
}

KeyspaceEvents::~KeyspaceEvents() {
  engine_.unsubscribe_expired(sink_);
}

Status KeyspaceEvents::set_flags(std::string_view letters) {
  std::uint32_t flags = 0;
  for (const char letter : letters) {
    if (letter == 'A') {
      flags |= all_classes;
    } else if (class_letters.find(letter) != std::string_view::npos) {
      flags |= flag_of(letter);
    } else {
      return Error{ErrorCode::bad_option, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."};
    }
  }
  const bool is_on = (flags & (to_keyspace | to_keyevent)) != 0;
  letters_.store(flags, std::memory_order_relaxed);             // mo: relaxed: as in any()
  flags_.store(is_on ? flags : 0U, std::memory_order_relaxed);  // mo: relaxed: as in any()
  return Done{};
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
  SEMEL_ASSERT(class_letters.find(event_class) != std::string_view::npos);
  // mo: relaxed: as in any()
  return (flags_.load(std::memory_order_relaxed) & flag_of(event_class)) != 0;
}

void KeyspaceEvents::notify(ClientState* from, char event_class, std::string_view event,
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

bool KeyspaceEvents::wants(ExpiredEvent::What what) const noexcept {
  if (what == ExpiredEvent::What::record) return wants('x');
  return wants('h') || (what == ExpiredEvent::What::last_fields && wants('g'));
}

void KeyspaceEvents::queue(const ExpiredEvent& event) {
  if (wants(event.what)) hold('x', event.db, event.key, event.what);
}

void KeyspaceEvents::queue_evicted(std::uint8_t db, std::string_view key) {
  if (wants('e')) hold('e', db, key, ExpiredEvent::What::record);
}

void KeyspaceEvents::hold(char event_class, std::uint8_t db, std::string_view key,
                          ExpiredEvent::What what) {
  if (!pubsub_.any()) return;
  const base::MutexLock lock{mutex_};
  if (ended_.size() >= waiting_max || ended_bytes_ + key.size() > waiting_bytes_max) {
    lost_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
    return;
  }
  ended_bytes_ += key.size();
  ended_.push_back({event_class, db, std::string{key}, what});
  waiting_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in drain()
}

void KeyspaceEvents::notify_ended(ClientState* from) {
  // Other threads wait here, so that their events of a key follow the event of its end.
  const base::MutexLock telling{notifying_};
  std::deque<Ended> taken;
  {
    const base::MutexLock lock{mutex_};
    taken.swap(ended_);
    ended_bytes_ = 0;
  }
  for (const Ended& each : taken) {
    if (each.what == ExpiredEvent::What::record) {
      const std::string_view event = each.event_class == 'x' ? "expired" : "evicted";
      if (wants(each.event_class)) publish(from, event, each.db, each.key);
      continue;
    }
    if (wants('h')) publish(from, "hexpired", each.db, each.key);
    const bool is_gone = each.what == ExpiredEvent::What::last_fields;
    if (is_gone && wants('g')) publish(from, "del", each.db, each.key);
  }
  waiting_.fetch_sub(taken.size(), std::memory_order_relaxed);  // mo: relaxed: as in drain()
}

}  // namespace semel::net
