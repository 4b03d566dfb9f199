// Connections of a node to other servers, for MIGRATE, and the threads that use them.
#pragma once

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

  NodePeers() = default;
  ~NodePeers() { end(); }
  NodePeers(const NodePeers&) = delete;
  NodePeers& operator=(const NodePeers&) = delete;

  /// Runs `work` on a thread of its own. False: so many run already, end() was called, or there is
  /// no thread. Thread-safe.
  bool run(std::function<void()> work);
  /// For such a thread. Errors: storage_failed.
  [[nodiscard]] Result<std::unique_ptr<net::PeerLink>> connect(const net::PeerAddress& address);
  /// Fails all steps of connections, and waits for the threads. What they use must still be there.
  void end();

 private:
  struct Runner {
    std::thread thread{};
    std::atomic<bool> is_done{false};
  };

  base::Mutex mutex_;
  std::list<Runner> runners_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<bool> ends_{false};
};

}  // namespace semel::tool
