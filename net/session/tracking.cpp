#include "net/session/tracking.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "net/resp/resp_writer.hpp"

namespace semel::net {
namespace {

constexpr std::string_view redirect_channel = "__redis__:invalidate";
constexpr std::size_t evicted_max = 1'000;  // under one lock

// mo: relaxed: figures of a connection for display and for what it is sent next.
constexpr auto shown_order = std::memory_order_relaxed;

bool takes_messages(const ClientHandle& handle) noexcept {
  const ClientHandle::Shown& shown = handle.shown;
  // mo: relaxed: as above.
  return shown.channels.load(shown_order) + shown.patterns.load(shown_order) +
             shown.shard_channels.load(shown_order) !=
         0;
}

void show_tracking(const Tracker& tracker, bool is_on) noexcept {
  ClientHandle::Shown& shown = tracker.handle->shown;
  // mo: relaxed: as above.
  shown.tracks.store(is_on, shown_order);
  shown.broadcasts.store(is_on && tracker.options.broadcasts, shown_order);
  shown.redirect_broken.store(false, shown_order);
  shown.redirect.store(is_on ? static_cast<std::int64_t>(tracker.options.redirect) : -1,
                       shown_order);
}

/// What `to` can be sent: the names, or that all keys have changed. False: nothing.
template <class Names>
bool append_frame(std::string& bytes, const ClientHandle& to, bool is_redirected,
                  const Names* names) {
  // mo: relaxed: as above.
  const bool is_three = to.shown.dialect.load(shown_order) == 3;
  if (!is_three && !(is_redirected && takes_messages(to))) return false;
  RespWriter writer{bytes, is_three ? Resp::three : Resp::two};
  writer.push(is_three ? 2 : 3);
  if (is_three) {
    writer.bulk("invalidate");
  } else {
    writer.bulk("message"), writer.bulk(redirect_channel);
  }
  if (names == nullptr) {
    writer.null();
  } else {
    writer.array(names->size());
    for (const auto& name : *names) writer.bulk(name);
  }
  return true;
}

}  // namespace

Tracking::Tracking(Engine& engine, Watches& watches, const Clients& clients)
    : engine_(engine), watches_(watches), clients_(clients) {
  watches.follow([this](Bytes key) { changed(nobody, key); });
  sink_ = engine_.subscribe_expired([this](const ExpiredEvent& event) {
    if (any()) changed(nobody, event.key);
  });
}

Tracking::~Tracking() {
  engine_.unsubscribe_expired(sink_);
}

// --- connections that track ---------------------------------------------------------------------

void Tracking::enable(std::shared_ptr<Tracker>& tracker,
                      const std::shared_ptr<ClientHandle>& handle, const TrackingOptions& options,
                      Keys prefixes) {
  const bool is_new = tracker == nullptr;
  if (is_new) tracker = std::make_shared<Tracker>(Tracker{.handle = handle});
  {
    const base::MutexLock lock{mutex_};
    if (is_new) trackers_.emplace(handle->origin.id, tracker);
    tracker->options = options;
    if (options.broadcasts && prefixes.empty()) add_prefix(*tracker, {});
    for (const std::string_view prefix : prefixes) add_prefix(*tracker, prefix);
  }
  show_tracking(*tracker, true);
  if (!is_new) return;
  count_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in any()
  watches_.be_followed(true);
}

void Tracking::disable(std::shared_ptr<Tracker>& tracker) {
  if (tracker == nullptr) return;
  {
    const base::MutexLock lock{mutex_};
    remove_prefixes(*tracker);
    trackers_.erase(tracker->handle->origin.id);
    queues_.erase(tracker->handle->origin.id);
    if (trackers_.empty()) table_.clear();  // no change is looked up from now on
  }
  show_tracking(*tracker, false);
  count_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as in any()
  watches_.be_followed(false);
  tracker.reset();
}

void Tracking::add_prefix(Tracker& tracker, std::string_view prefix) {
  if (!tracker.prefixes.emplace(prefix).second) return;
  tracker.prefix_bytes += prefix.size();
  const auto [entry, is_new] = prefixes_.try_emplace(std::string{prefix});
  if (is_new) ++lengths_[prefix.size()];
  entry->second.clients.insert(tracker.handle->origin.id);
}

void Tracking::remove_prefixes(Tracker& tracker) {
  for (const std::string& prefix : tracker.prefixes) {
    const auto entry = prefixes_.find(prefix);
    SEMEL_ASSERT(entry != prefixes_.end());
    entry->second.clients.erase(tracker.handle->origin.id);
    if (!entry->second.clients.empty()) continue;
    prefixes_.erase(entry);
    const auto length = lengths_.find(prefix.size());
    SEMEL_ASSERT(length != lengths_.end());
    if (--length->second == 0) lengths_.erase(length);
  }
  tracker.prefixes.clear();
  tracker.prefix_bytes = 0;
}

// --- the table ----------------------------------------------------------------------------------

void Tracking::invalidate(std::uint64_t by, std::string_view key) {
  for (const std::uint64_t id : table_.take(key)) {
    const auto found = trackers_.find(id);
    if (found == trackers_.end()) continue;
    const TrackingOptions& options = found->second->options;
    if (!options.broadcasts && !(options.no_loop && by == id)) queue(id, key);
  }
}

void Tracking::evict(std::size_t keys) {
  for (; keys != 0 && table_.is_full(); --keys) invalidate(nobody, table_.any_key());
}

void Tracking::set_keys_max(std::size_t keys_max) {
  for (bool is_over = true; is_over;) {
    {
      const base::MutexLock lock{mutex_};
      table_.set_keys_max(keys_max);
      evict(evicted_max);
      is_over = table_.is_full();
    }
    send(false);
  }
}

void Tracking::remember(const Tracker& tracker, Keys keys) {
  const base::MutexLock lock{mutex_};
  for (const std::string_view key : keys) table_.add(tracker.handle->origin.id, key);
}

void Tracking::confirm(const Tracker& tracker, Keys keys) {
  const std::uint64_t id = tracker.handle->origin.id;
  const base::MutexLock lock{mutex_};
  for (const std::string_view key : keys) {
    if (table_.has(id, key)) continue;
    // Its message may be sent before the reply, and the reply may have the value before the change.
    table_.add(id, key);
    queue(id, key);
  }
  evict(evicted_max);
}

// --- changes ------------------------------------------------------------------------------------

void Tracking::queue(std::uint64_t id, std::string_view key) {
  Queue& queue = queues_[id];
  queued_.store(true, std::memory_order_relaxed);      // mo: relaxed: as in send()
  if (queue.all || queue.names.contains(key)) return;  // all comes last
  queue.bytes += TrackedKeys::key_bytes + key.size();
  if (queue.bytes > queued_bytes_max) {
    queue.all = true;
    queue.names.clear();
    queue.keys.clear();
    queue.bytes = 0;
    return;
  }
  queue.names.insert(queue.keys.emplace_back(key));
}

void Tracking::gather(std::uint64_t by, std::string_view key) {
  for (const auto& [length, count] : lengths_) {
    if (length > key.size()) break;
    const auto found = prefixes_.find(key.substr(0, length));
    if (found == prefixes_.end()) continue;
    queued_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in send()
    Prefix& prefix = found->second;
    if (prefix.all) continue;
    const auto [entry, is_new] = prefix.keys.insert_or_assign(std::string{key}, by);
    if (is_new) prefix.bytes += TrackedKeys::key_bytes + key.size();
    if (prefix.bytes <= queued_bytes_max) continue;
    prefix.all = true;
    prefix.keys.clear();
    prefix.bytes = 0;
  }
}

void Tracking::changed(std::uint64_t by, std::string_view key) {
  const base::MutexLock lock{mutex_};
  gather(by, key);
  invalidate(by, key);
}

void Tracking::all_changed() {
  const base::MutexLock lock{mutex_};
  table_.clear();
  for (const auto& [id, tracker] : trackers_) {
    queues_[id].all = true;
    queued_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in send()
  }
}

// --- messages -----------------------------------------------------------------------------------

void Tracking::take_prefix(Prefix& prefix, std::vector<Outgoing>& to) {
  const auto keys = std::exchange(prefix.keys, {});
  const bool all = std::exchange(prefix.all, false);
  prefix.bytes = 0;
  if (keys.empty() && !all) return;
  for (const std::uint64_t id : prefix.clients) {
    const std::shared_ptr<Tracker>& tracker = trackers_.at(id);
    Outgoing outgoing{.tracker = tracker, .all = all};
    for (const auto& [key, by] : keys) {
      if (!tracker->options.no_loop || by != id) outgoing.keys.push_back(key);
    }
    if (all || !outgoing.keys.empty()) to.push_back(std::move(outgoing));
  }
}

std::vector<Tracking::Outgoing> Tracking::take(bool at_end) {
  std::vector<Outgoing> found;
  for (auto& [id, queue] : queues_) {
    const auto tracker = trackers_.find(id);
    if (tracker == trackers_.end()) continue;
    for (std::string& key : queue.keys) {
      found.push_back({.tracker = tracker->second, .keys = {std::move(key)}});
    }
    if (queue.all) found.push_back({.tracker = tracker->second, .all = true});
  }
  queues_.clear();
  if (at_end) {
    for (auto& [name, prefix] : prefixes_) take_prefix(prefix, found);
  }
  // mo: relaxed: as in send()
  queued_.store(!at_end && std::any_of(prefixes_.begin(), prefixes_.end(),
                                       [](const auto& each) {
                                         return each.second.all || !each.second.keys.empty();
                                       }),
                std::memory_order_relaxed);
  return found;
}

void Tracking::send_queued(bool at_end) {
  std::vector<Outgoing> outgoing;
  {
    const base::MutexLock lock{mutex_};
    outgoing = take(at_end);
  }
  for (const Outgoing& each : outgoing) send(each);
}

void Tracking::send(const Outgoing& each) const {
  ClientHandle& own = *each.tracker->handle;
  if (!own.shown.tracks.load(shown_order)) return;  // mo: relaxed: as above.
  // mo: relaxed: as above; the options are the tracker's thread's.
  const auto redirect =
      static_cast<std::uint64_t>(std::max<std::int64_t>(own.shown.redirect.load(shown_order), 0));
  std::string bytes;
  const std::shared_ptr<ClientHandle> to =
      redirect == 0 ? each.tracker->handle : clients_.find(redirect);
  if (to == nullptr) {
    // mo: relaxed: as above.
    own.shown.redirect_broken.store(true, shown_order);
    if (own.shown.dialect.load(shown_order) != 3) return;
    RespWriter writer{bytes, Resp::three};
    writer.push(2);
    writer.bulk("tracking-redir-broken");
    writer.integer(static_cast<std::int64_t>(redirect));
    static_cast<void>(own.push(bytes));  // one that cannot take it is being closed
    return;
  }
  if (append_frame(bytes, *to, redirect != 0, each.all ? nullptr : &each.keys)) {
    static_cast<void>(to->push(bytes));  // as above
  }
}

Tracking::Message Tracking::message_of(const Tracker& tracker, Keys keys) const {
  const std::uint64_t redirect = tracker.options.redirect;
  Message message{.to = redirect == 0 ? tracker.handle : clients_.find(redirect)};
  if (message.to == nullptr) return {};
  for (const std::string_view key : keys) {
    const std::array<std::string_view, 1> one{key};
    if (!append_frame(message.bytes, *message.to, redirect != 0, &one)) return {};
  }
  return message;
}

Tracking::Figures Tracking::figures() const {
  const base::MutexLock lock{mutex_};
  return {.clients = trackers_.size(),
          .keys = table_.size(),
          .items = table_.items(),
          .prefixes = prefixes_.size()};
}

}  // namespace semel::net
