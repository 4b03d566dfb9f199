#include "net/events/pubsub.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/resp/reply_error.hpp"
#include "net/session/client_state.hpp"
#include "semel/store.hpp"

namespace semel::net {
namespace {

constexpr std::array<std::string_view, topic_count> subscribe_words = {"subscribe", "psubscribe",
                                                                       "ssubscribe"};
constexpr std::array<std::string_view, topic_count> unsubscribe_words = {
    "unsubscribe", "punsubscribe", "sunsubscribe"};

/// The counts that confirmations show: channels and patterns together, shards' channels separately.
std::size_t shown_count(const Subscriber* subscriber, Topic topic) noexcept {
  if (subscriber == nullptr) return 0;
  if (topic == Topic::shard) return subscriber->of(Topic::shard).size();
  return subscriber->of(Topic::channel).size() + subscriber->of(Topic::pattern).size();
}

/// "subscribe", name, how many there are now.
void append_confirmation(std::string& bytes, const ClientState& client, std::string_view word,
                         std::optional<std::string_view> name, Topic topic) {
  RespWriter writer{bytes, client.dialect};
  writer.push(3);
  writer.bulk(word);
  name ? writer.bulk(*name) : writer.null();
  writer.integer(static_cast<std::int64_t>(shown_count(client.subscriber.get(), topic)));
}

/// The frame of a message in either dialect, made on first use. `pattern`: null or the matched one.
class Frame {
 public:
  Frame(Topic topic, std::string_view channel, std::string_view text,
        const std::shared_ptr<ClientMemory>& memory) noexcept
      : topic_(topic), channel_(channel), text_(text), memory_(memory) {}

  [[nodiscard]] const SharedBytes& of(Resp dialect, const std::string* pattern) {
    if (std::exchange(pattern_, pattern) != pattern) bytes_ = {};
    SharedBytes& shared = bytes_[dialect == Resp::three ? 1 : 0];
    if (shared != nullptr) return shared;
    std::string bytes;
    RespWriter writer{bytes, dialect};
    writer.push(pattern != nullptr ? 4 : 3);
    writer.bulk(pattern != nullptr ? "pmessage" : topic_ == Topic::shard ? "smessage" : "message");
    if (pattern != nullptr) writer.bulk(*pattern);
    writer.bulk(channel_);
    writer.bulk(text_);
    shared = std::make_shared<const LargeBytes>(std::move(bytes), memory_);
    return shared;
  }

 private:
  const Topic topic_;
  const std::string_view channel_;
  const std::string_view text_;
  const std::shared_ptr<ClientMemory>& memory_;
  const std::string* pattern_ = nullptr;
  std::array<SharedBytes, 2> bytes_{};
};

void show_counts(const Subscriber& subscriber) noexcept {
  ClientHandle::Shown& shown = subscriber.handle->shown;
  const auto store = [&](std::atomic<std::uint32_t>& to, Topic topic) {
    // mo: relaxed: shown only
    to.store(static_cast<std::uint32_t>(subscriber.of(topic).size()), std::memory_order_relaxed);
  };
  store(shown.channels, Topic::channel);
  store(shown.patterns, Topic::pattern);
  store(shown.shard_channels, Topic::shard);
}

/// Whether `subscriber` may have more `names`.
Status check_names(const Subscriber& subscriber, Topic topic, PubSub::Names names) {
  std::size_t count = subscriber.count();
  std::size_t bytes = subscriber.name_bytes;
  for (const std::string_view name : names) {
    if (name.size() > PubSub::name_bytes_max) {
      return reply_error("ERR the name of a channel has " + std::to_string(name.size()) +
                         " bytes, the limit is " + std::to_string(PubSub::name_bytes_max));
    }
    if (subscriber.of(topic).contains(name)) continue;
    ++count;
    bytes += name.size();
  }
  if (count > PubSub::subscriptions_max) {
    return reply_error("ERR a client would have " + std::to_string(count) +
                       " subscriptions, the limit is " + std::to_string(PubSub::subscriptions_max));
  }
  if (bytes > PubSub::names_bytes_max) {
    return reply_error("ERR the names a client subscribes to would have " + std::to_string(bytes) +
                       " bytes, the limit is " + std::to_string(PubSub::names_bytes_max));
  }
  return Done{};
}

}  // namespace

void PubSub::add(Subscriber& subscriber, Topic topic, std::string_view name) {
  auto& own = subscriber.names[static_cast<std::size_t>(topic)];
  if (own.contains(name)) return;
  const auto entry = names_of(topic).try_emplace(std::string{name}).first;
  entry->second.push_back(&subscriber);
  own.insert(entry->first);
  subscriber.name_bytes += name.size();
  subscriptions_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in any()
}

void PubSub::remove(Subscriber& subscriber, Topic topic, std::string_view name) {
  auto& own = subscriber.names[static_cast<std::size_t>(topic)];
  const auto mine = own.find(name);
  if (mine == own.end()) return;
  own.erase(mine);
  SEMEL_ASSERT(subscriber.name_bytes >= name.size());
  subscriber.name_bytes -= name.size();
  subscriptions_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as in any()
  ByName& all = names_of(topic);
  const auto entry = all.find(name);
  SEMEL_ASSERT(entry != all.end());  // each name of a subscriber is one of ours
  Subscribers& subscribers = entry->second;
  // From the end: the newest name is most often removed first.
  const auto found = std::find(subscribers.rbegin(), subscribers.rend(), &subscriber);
  SEMEL_ASSERT(found != subscribers.rend());
  std::swap(*found, subscribers.back());
  subscribers.pop_back();
  if (subscribers.empty()) all.erase(entry);
}

Status PubSub::subscribe(ClientState& client, Topic topic, Names names) {
  if (client.subscriber == nullptr) {
    client.subscriber = std::make_unique<Subscriber>(Subscriber{client.handle, client.dialect});
  }
  Subscriber& subscriber = *client.subscriber;
  SEMEL_CHECK(check_names(subscriber, topic, names));
  client.push_directly();
  std::string bytes;
  const base::MutexLock lock{mutex_};
  for (const std::string_view name : names) {
    add(subscriber, topic, name);
    append_confirmation(bytes, client, subscribe_words[static_cast<std::size_t>(topic)], name,
                        topic);
  }
  show_counts(subscriber);
  client.emit(bytes);
  return Done{};
}

void PubSub::unsubscribe(ClientState& client, Topic topic, Names names) {
  const std::string_view word = unsubscribe_words[static_cast<std::size_t>(topic)];
  Subscriber* const subscriber = client.subscriber.get();
  std::string bytes;
  const base::MutexLock lock{mutex_};
  const auto end = [&](std::string_view name) SEMEL_REQUIRES(mutex_) {
    const std::string kept{name};  // it may be a view of the entry that is erased
    if (subscriber != nullptr) remove(*subscriber, topic, kept);
    append_confirmation(bytes, client, word, kept, topic);
  };
  for (const std::string_view name : names) end(name);
  if (names.empty()) {
    if (subscriber == nullptr || subscriber->of(topic).empty()) {
      append_confirmation(bytes, client, word, std::nullopt, topic);
    }
    while (subscriber != nullptr && !subscriber->of(topic).empty()) {
      end(*subscriber->of(topic).begin());
    }
  }
  if (subscriber != nullptr) show_counts(*subscriber);
  client.emit(bytes);
}

void PubSub::forget(ClientState& client) {
  if (client.subscriber == nullptr) return;
  const base::MutexLock lock{mutex_};
  for (const Topic topic : {Topic::channel, Topic::pattern, Topic::shard}) {
    while (!client.subscriber->of(topic).empty()) {
      const std::string name{*client.subscriber->of(topic).begin()};
      remove(*client.subscriber, topic, name);
    }
  }
  SEMEL_ASSERT(client.subscriber->count() == 0 && client.subscriber->name_bytes == 0);
  show_counts(*client.subscriber);
}

void PubSub::close_unless(const std::function<bool(const Subscriber&)>& may_hear) {
  const base::MutexLock lock{mutex_};
  std::set<const Subscriber*> seen;
  for (const ByName& named : names_) {
    for (const auto& [name, subscribers] : named) {
      for (const Subscriber* const each : subscribers) {
        if (seen.insert(each).second && !may_hear(*each)) each->handle->kill();
      }
    }
  }
}

void PubSub::change_dialect(ClientState& client) {
  if (client.subscriber == nullptr) return;
  const base::MutexLock lock{mutex_};
  client.subscriber->dialect = client.dialect;
}

template <class Take>
std::size_t PubSub::each_receiver(Topic topic, std::string_view channel, Take&& take) const {
  std::size_t count = 0;
  const auto take_all = [&](const Subscribers& subscribers, const std::string* pattern) {
    for (Subscriber* const each : subscribers) take(*each, pattern);
    count += subscribers.size();
  };
  const ByName& named = names_of(topic);
  if (const auto found = named.find(channel); found != named.end()) {
    take_all(found->second, nullptr);
  }
  if (topic == Topic::shard) return count;
  for (const auto& [pattern, subscribers] : names_of(Topic::pattern)) {
    if (glob_match(pattern, channel)) take_all(subscribers, &pattern);
  }
  return count;
}

std::size_t PubSub::send(Topic topic, std::string_view channel, std::string_view text,
                         const ClientHandle* but) const {
  Frame frame{topic, channel, text, memory_};
  return each_receiver(topic, channel, [&](Subscriber& to, const std::string* pattern) {
    // A subscriber that cannot take it is being closed, and ends its subscriptions itself.
    if (to.handle.get() != but) {
      static_cast<void>(to.handle->push(frame.of(to.dialect, pattern)));
    }
  });
}

std::size_t PubSub::publish(ClientState* from, Topic topic, std::string_view channel,
                            std::string_view text) {
  if (!any()) return 0;
  const base::MutexLock lock{mutex_};
  if (from != nullptr && from->context->is_part()) return hold(*from, topic, channel, text);
  return send(topic, channel, text, nullptr);
}

std::size_t PubSub::hold(ClientState& client, Topic topic, std::string_view channel,
                         std::string_view text) {
  Frame frame{topic, channel, text, memory_};
  const std::size_t count =
      each_receiver(topic, channel, [&](Subscriber& to, const std::string* pattern) {
        if (&to == client.subscriber.get()) hold_own(client, frame.of(to.dialect, pattern)->view());
      });
  if (count == 0) return 0;
  if (client.held == nullptr) client.held = std::make_unique<HeldPushes>();
  client.held->messages.push_back({topic, std::string{channel}, std::string{text}});
  client.held->bytes += channel.size() + text.size() + sizeof(HeldPushes::Message);
  // Sending it before the transaction has ended is early, but not wrong.
  if (client.held->bytes > held_bytes_max) send_held(client);
  return count;
}

void PubSub::hold_own(ClientState& client, std::string_view bytes) {
  if (client.held == nullptr) client.held = std::make_unique<HeldPushes>();
  if (client.held->own.size() + bytes.size() > ClientHandle::push_bytes_max) {
    return client.handle->kill();
  }
  client.held->own.append(bytes);
}

void PubSub::send_held(ClientState& client) {
  for (const HeldPushes::Message& each : client.held->messages) {
    send(each.topic, each.channel, each.text, client.handle.get());
  }
  client.held->messages.clear();
  client.held->bytes = 0;
}

void PubSub::release(ClientState& client) {
  if (client.held == nullptr) return;
  const base::MutexLock lock{mutex_};
  send_held(client);
  if (!client.held->own.empty()) client.emit(client.held->own);
  client.held.reset();
}

std::vector<std::string> PubSub::channels(Topic topic,
                                          std::optional<std::string_view> pattern) const {
  std::vector<std::string> found;
  const base::MutexLock lock{mutex_};
  for (const auto& [name, subscribers] : names_of(topic)) {
    if (!pattern || glob_match(*pattern, name)) found.push_back(name);
  }
  return found;
}

std::size_t PubSub::subscribers(Topic topic, std::string_view name) const {
  const base::MutexLock lock{mutex_};
  const ByName& named = names_of(topic);
  const auto found = named.find(name);
  return found == named.end() ? 0 : found->second.size();
}

std::size_t PubSub::pattern_count() const {
  const base::MutexLock lock{mutex_};
  return names_of(Topic::pattern).size();
}

}  // namespace semel::net
