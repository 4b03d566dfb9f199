// One thread of the gateway, with its listening socket, its sessions and its upstream connections.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "gateway/proxy/session.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

/// Shared by all workers. Outlives them.
struct Shared {
  const Settings& settings;
  const UpstreamAddress& upstream;
  const Clock& clock;
  Counters& counters;
  MemoryBudget& memory;
  AccessLog& log;
  const CurrentTls& client_tls;
  const CurrentTls& upstream_tls;
  bool is_tls = false;  ///< of clients' connections
  unsigned thread_count = 1;
};

/// The terms of requests that begin now.
struct Terms {
  std::shared_ptr<const RoutePolicy> policy{};
  /// Makes the store of a thread's requests; called on that thread, or before it runs. `before`:
  /// the store until now, null: none.
  std::function<std::shared_ptr<ClaimStore>(asio::io_context&, const std::shared_ptr<Bridge>&,
                                            const std::shared_ptr<ClaimStore>& before)>
      make_store{};
};

class Worker {
 public:
  Worker(const Shared& shared, const Terms& terms);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Port 0: a free one. Errors: bad_option.
  [[nodiscard]] Status listen(const tcp::endpoint& at);
  /// Accepts from the same queue as `first`, which listens. Separate sockets on one port
  /// (SO_REUSEPORT) would let a second gateway, with its own store, take a part of the requests
  /// without an error.
  [[nodiscard]] Status listen_with(Worker& first);
  [[nodiscard]] std::uint16_t port() const;
  /// Starts the thread.
  void run();
  /// From any thread: requests that begin later use these terms.
  void use(const Terms& terms);
  /// From any thread: accepts no more, and ends idle connections.
  void drain();
  /// Ends the thread at once. After that the engine calls nothing here.
  void stop();

 private:
  void work() noexcept;
  [[nodiscard]] bool restart() noexcept;
  void pause() noexcept;
  void begin_accepting();
  [[nodiscard]] asio::awaitable<void> accept();
  void admit(tcp::socket socket);
  [[nodiscard]] bool drop_slowest();

  const Shared& shared_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  SessionContext context_;
  tcp::acceptor acceptor_{io_};
  base::Mutex mutex_;
  base::Condition stopped_;
  bool is_stopping_ SEMEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace semel::gateway
