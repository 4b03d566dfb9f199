// Connections of a node to other servers, for MIGRATE, and the threads that use them.
#pragma once

#include <netdb.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "base/mutex.hpp"
#include "net/session/peer_link.hpp"
#include "semel/result.hpp"

namespace semel::tool {

class NodePeers {
 public:
  static constexpr std::size_t threads_max = 16;
  /// Look-ups of names at once; one goes on when its MIGRATE has ended.
  static constexpr std::size_t lookups_max = 16;
  /// As getaddrinfo().
  using LookUp = int (*)(const char* host, const char* port, const addrinfo* hints,
                         addrinfo** found);

  struct Release {
    void operator()(addrinfo* found) const noexcept { freeaddrinfo(found); }
  };
  using Addresses = std::unique_ptr<addrinfo, Release>;

  explicit NodePeers(LookUp look_up = &getaddrinfo) noexcept : look_up_(look_up) {}
  ~NodePeers() { end(); }
  NodePeers(const NodePeers&) = delete;
  NodePeers& operator=(const NodePeers&) = delete;

  /// Runs `work` on a thread of its own. False: so many run already, end() was called, or there is
  /// no thread. Thread-safe.
  bool run(std::function<void()> work);
  /// For such a thread. The look-up of a name is a step as well. Errors: storage_failed.
  [[nodiscard]] Result<std::unique_ptr<net::PeerLink>> connect(const net::PeerAddress& address);
  /// Fails all steps of connections, and waits for the threads. What they use must still be there.
  void end();

 private:
  struct Runner {
    std::thread thread{};
    std::atomic<bool> is_done{false};
  };

  [[nodiscard]] Addresses find(const net::PeerAddress& address) const;

  const LookUp look_up_;
  base::Mutex mutex_;
  std::list<Runner> runners_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<bool> ends_{false};
};

}  // namespace semel::tool
