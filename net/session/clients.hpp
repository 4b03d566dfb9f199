// The connections of a node, by number, and the pause that holds their commands back.
//
// Concurrency: pausing() is a hint that costs one load for each request. A connection that
// sees it calls wait_for_end(), which decides under the lock, so that none waits for a past end.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "net/session/client_handle.hpp"
#include "semel/types.hpp"

namespace semel::net {

struct ClientState;

/// What a client holds, for CLIENT LIST, INFO and eviction.
struct ClientBytes {
  std::size_t input = 0;
  std::size_t input_spare = 0;
  std::size_t arguments = 0;
  std::size_t transaction = 0;
  std::size_t output = 0;  ///< replies and pushes
  std::size_t large = 0;   ///< replies by reference
  std::size_t parts = 0;   ///< of output
  std::size_t all = 0;     ///< with the connection itself
};
[[nodiscard]] ClientBytes bytes_of(const ClientHandle& handle) noexcept;

enum class Pause : std::uint8_t { none, writes, all };

class Clients {
 public:
  using Handle = std::shared_ptr<ClientHandle>;

  Clients() = default;
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  void add(const Handle& handle);
  void remove(const Handle& handle);
  /// Null: there is none.
  [[nodiscard]] Handle find(std::uint64_t id) const;
  /// By their numbers.
  [[nodiscard]] std::vector<Handle> all() const;
  [[nodiscard]] std::size_t size() const;

  /// If `memory` is over its limit: closes the clients that hold most until it is within the limit.
  /// Those with CLIENT NO-EVICT come last.
  void evict(ClientMemory& memory);

  // --- CLIENT PAUSE ---------------------------------------------------------------------------
  /// Holds back until `end`; of two pauses at a time the wider kind and the later end count.
  void pause(Pause kind, Timestamp end);
  /// Held-back connections go on.
  void unpause();
  /// The same if the end has come.
  void unpause_after(Timestamp now);
  [[nodiscard]] bool pausing() const noexcept {
    // mo: relaxed: a hint; a request that comes at the same time as the pause may be before it.
    return pausing_.load(std::memory_order_relaxed);
  }
  /// True: `handle` is resumed when the pause ends. False: the command is not held back.
  [[nodiscard]] bool wait_for_end(const Handle& handle, bool writes, Timestamp now);

 private:
  /// The clients to resume, without the lock.
  using Held = std::vector<std::weak_ptr<ClientHandle>>;
  [[nodiscard]] Held end_pause() SEMEL_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  std::map<std::uint64_t, Handle> handles_ SEMEL_GUARDED_BY(mutex_);
  Pause kind_ SEMEL_GUARDED_BY(mutex_) = Pause::none;
  Timestamp end_ SEMEL_GUARDED_BY(mutex_){};
  Held held_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<bool> pausing_{false};  // whether kind_ is not none
};

/// What kind of client it is to CLIENT LIST TYPE: "normal" or "pubsub".
[[nodiscard]] std::string_view type_of(const ClientHandle& handle) noexcept;
/// A line of CLIENT LIST, its end included.
[[nodiscard]] std::string line_of(const ClientHandle& handle, Timestamp now);
/// The same without its end, for the client of this thread, brought up to date.
[[nodiscard]] std::string describe(const ClientState& client, Timestamp now);
/// Its dialect has changed: what others push to it from now on is in the new one.
void show_dialect(const ClientState& client) noexcept;
/// Brings what others see of the client up to date.
void show_client(const ClientState& client, Timestamp now) noexcept;

}  // namespace semel::net
