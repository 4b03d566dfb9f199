// MONITOR: connections that receive every command of all others after it has run.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "net/session/client_handle.hpp"

namespace semel::net {

struct ClientState;

class Monitors {
 public:
  Monitors() = default;
  Monitors(const Monitors&) = delete;
  Monitors& operator=(const Monitors&) = delete;

  /// Whether MONITOR is allowed: it shows the data of all clients.
  std::atomic<bool> allowed{false};

  void add(ClientState& client);
  void remove(ClientState& client);
  [[nodiscard]] bool any() const noexcept {
    // mo: relaxed: it is open which concurrent command a new monitor sees first
    return count_.load(std::memory_order_relaxed) != 0;
  }
  /// Sends a line about a command of `from` to all monitors, behind the reply of a transaction.
  void send(ClientState& from, std::string line, const std::shared_ptr<ClientMemory>& memory);

 private:
  std::atomic<std::size_t> count_{0};
  base::Mutex mutex_;
  std::vector<std::shared_ptr<ClientHandle>> handles_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::net
