#include "net/session/clients.hpp"

#include <algorithm>
#include <utility>

#include "net/session/client_state.hpp"

namespace semel::net {
namespace {

// mo: relaxed: figures of a connection for display, one writer, no order.
constexpr auto any_order = std::memory_order_relaxed;

std::string flags_of(const ClientHandle& handle) {
  const ClientHandle::Shown& shown = handle.shown;
  std::string flags;
  // mo: relaxed: as above.
  if (shown.monitors.load(any_order)) flags += 'O';
  if (type_of(handle) == "pubsub") flags += 'P';
  if (shown.queued.load(any_order) >= 0) flags += 'x';
  if (shown.waits.load(any_order)) flags += 'b';
  if (shown.tracks.load(any_order)) flags += 't';
  if (shown.redirect_broken.load(any_order)) flags += 'R';
  if (shown.broadcasts.load(any_order)) flags += 'B';
  if (handle.origin.is_unix) flags += 'U';
  if (shown.no_evict.load(any_order)) flags += 'e';
  if (shown.no_touch.load(any_order)) flags += 'T';
  return flags.empty() ? "N" : flags;
}

std::string_view last_command_of(const ClientHandle& handle) noexcept {
  const std::string_view* const name = handle.shown.command.load(any_order);  // of a constant
  return name == nullptr ? "NULL" : *name;
}

}  // namespace

void Clients::add(const Handle& handle) {
  const base::MutexLock lock{mutex_};
  handles_.insert_or_assign(handle->origin.id, handle);
}

void Clients::remove(const Handle& handle) {
  const base::MutexLock lock{mutex_};
  const auto found = handles_.find(handle->origin.id);
  if (found != handles_.end() && found->second == handle) handles_.erase(found);
}

void Clients::evict(ClientMemory& memory) {
  const base::MutexLock lock{mutex_};
  if (!memory.is_over()) return;
  struct Candidate {
    bool stays_longer;
    std::size_t bytes;
    ClientHandle* handle;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(handles_.size());
  std::size_t leaving = 0;
  for (const auto& [id, handle] : handles_) {
    const ClientBytes bytes = bytes_of(*handle);
    const std::size_t held = bytes.all - ClientHandle::own_bytes;
    if (handle->is_killed()) {
      leaving += held;
    } else if (held != 0) {
      // mo: relaxed: as above.
      candidates.push_back({handle->shown.no_evict.load(any_order), held, handle.get()});
    }
  }
  // Some more than needed, so that the next byte does not begin this anew.
  const std::size_t enough = memory.limit() - memory.limit() / 8;
  const std::size_t held = memory.bytes();
  if (held <= enough + leaving) return;
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& one, const Candidate& other) {
    return std::pair{one.stays_longer, other.bytes} < std::pair{other.stays_longer, one.bytes};
  });
  for (const Candidate& each : candidates) {
    if (held <= enough + leaving) break;
    leaving += each.bytes;
    memory.evicted();
    each.handle->kill();
  }
}

Clients::Handle Clients::find(std::uint64_t id) const {
  const base::MutexLock lock{mutex_};
  const auto found = handles_.find(id);
  return found == handles_.end() ? nullptr : found->second;
}

std::vector<Clients::Handle> Clients::all() const {
  const base::MutexLock lock{mutex_};
  std::vector<Handle> found;
  found.reserve(handles_.size());
  for (const auto& [id, handle] : handles_) found.push_back(handle);
  return found;
}

std::size_t Clients::size() const {
  const base::MutexLock lock{mutex_};
  return handles_.size();
}

void Clients::pause(Pause kind, Timestamp end) {
  const base::MutexLock lock{mutex_};
  kind_ = std::max(kind_, kind);
  end_ = std::max(end_, end);
  pausing_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in pausing()
}

namespace {

void resume(const std::vector<std::weak_ptr<ClientHandle>>& held) {
  for (const auto& weak : held) {
    if (const Clients::Handle handle = weak.lock()) handle->resume();
  }
}

}  // namespace

void Clients::unpause() {
  base::MutexLock lock{mutex_};
  const Held held = end_pause();
  lock.unlock();
  resume(held);
}

void Clients::unpause_after(Timestamp now) {
  base::MutexLock lock{mutex_};
  if (kind_ == Pause::none || now < end_) return;
  const Held held = end_pause();
  lock.unlock();
  resume(held);
}

Clients::Held Clients::end_pause() {
  kind_ = Pause::none;
  end_ = Timestamp{};
  pausing_.store(false, std::memory_order_relaxed);  // mo: relaxed: as in pausing()
  return std::exchange(held_, {});
}

bool Clients::wait_for_end(const Handle& handle, bool writes, Timestamp now) {
  unpause_after(now);
  const base::MutexLock lock{mutex_};
  if (kind_ == Pause::none || (kind_ == Pause::writes && !writes)) return false;
  // Of those that have gone since, no more are kept than there are others.
  if (held_.size() > 2 * handles_.size()) {
    std::erase_if(held_, [](const auto& weak) { return weak.expired(); });
  }
  held_.push_back(handle);
  return true;
}

std::string_view type_of(const ClientHandle& handle) noexcept {
  const ClientHandle::Shown& shown = handle.shown;
  // mo: relaxed: as above.
  const bool listens = shown.channels.load(any_order) != 0 || shown.patterns.load(any_order) != 0;
  return listens ? "pubsub" : "normal";
}

ClientBytes bytes_of(const ClientHandle& handle) noexcept {
  const ClientHandle::Shown& shown = handle.shown;
  // mo: relaxed: as above.
  const std::size_t pushed = shown.pushed.load(any_order);
  ClientBytes bytes{.input = shown.input.load(any_order),
                    .input_spare = shown.input_spare.load(any_order),
                    .arguments = shown.arguments.load(any_order),
                    .transaction = shown.transaction.load(any_order),
                    .output = shown.output.load(any_order) + pushed,
                    .large = shown.large.load(any_order),
                    .parts = shown.parts.load(any_order) + (pushed != 0 ? 1U : 0U)};
  bytes.all = ClientHandle::own_bytes + bytes.input + bytes.arguments + bytes.transaction +
              shown.kept.load(any_order) + bytes.output + bytes.large;
  return bytes;
}

std::string line_of(const ClientHandle& handle, Timestamp now) {
  const ClientHandle::Names names = handle.names();
  const ClientHandle::Shown& shown = handle.shown;
  const std::int64_t now_ms = now.time_since_epoch().count();
  std::string line;
  const auto field = [&](std::string_view name, const auto& value) {
    if (!line.empty()) line += ' ';
    line.append(name).append("=");
    if constexpr (std::is_convertible_v<decltype(value), std::string_view>) {
      line += value;
    } else {
      line += std::to_string(value);
    }
  };
  const auto seconds_since = [&](std::int64_t ms) {
    return std::max<std::int64_t>(now_ms - ms, 0) / 1000;
  };
  // mo: relaxed: as above.
  const std::int64_t last_ms = shown.last_ms.load(any_order);
  field("id", handle.origin.id);
  field("addr", handle.origin.address);
  field("laddr", handle.origin.local_address);
  field("fd", -1);
  field("name", names.name);
  field("age", seconds_since(handle.origin.connected_ms));
  field("idle", seconds_since(last_ms == 0 ? handle.origin.connected_ms : last_ms));
  field("flags", flags_of(handle));
  field("db", shown.db.load(any_order));
  field("sub", shown.channels.load(any_order));
  field("psub", shown.patterns.load(any_order));
  field("ssub", 0);
  field("multi", shown.queued.load(any_order));
  const ClientBytes bytes = bytes_of(handle);
  field("qbuf", bytes.input);
  field("qbuf-free", bytes.input_spare);
  field("argv-mem", bytes.arguments);
  field("multi-mem", bytes.transaction);
  // Replies have no buffer of a fixed size: all that waits is in the list.
  for (const std::string_view name : {"rbs", "rbp", "obl"}) field(name, 0);
  field("oll", bytes.parts);
  field("omem", bytes.output + bytes.large);
  field("tot-mem", bytes.all);
  field("events", std::string_view{"r"});
  field("cmd", last_command_of(handle));
  field("user", names.user);
  field("redir", shown.redirect.load(any_order));
  field("resp", shown.dialect.load(any_order));
  field("lib-name", names.library);
  field("lib-ver", names.library_version);
  return line += '\n';
}

std::string describe(const ClientState& client, Timestamp now) {
  show_client(client, now);
  std::string line = line_of(*client.handle, now);
  line.pop_back();
  return line;
}

void show_dialect(const ClientState& client) noexcept {
  // mo: relaxed: as above.
  client.handle->shown.dialect.store(static_cast<std::uint32_t>(client.dialect), any_order);
}

void show_client(const ClientState& client, Timestamp now) noexcept {
  ClientHandle::Shown& shown = client.handle->shown;
  const auto queued = client.transaction == nullptr
                          ? -1
                          : static_cast<std::int32_t>(client.transaction->commands.size());
  // mo: relaxed: as above.
  shown.db.store(client.db, any_order);
  shown.command.store(client.last_command, any_order);
  shown.last_ms.store(now.time_since_epoch().count(), any_order);
  shown.queued.store(queued, any_order);
  show_dialect(client);
  shown.waits.store(client.waits || client.held_back, any_order);
  shown.watched.store(
      client.watcher == nullptr ? 0 : static_cast<std::uint32_t>(client.watcher->keys.size()),
      any_order);
}

}  // namespace semel::net
