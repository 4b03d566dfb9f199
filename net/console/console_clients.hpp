// The sessions' connections to the node. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "net/console/command_client.hpp"
#include "net/server/session.hpp"
#include "semel/types.hpp"

namespace semel::net {

class ConsoleClients {
 public:
  using Make = std::function<std::unique_ptr<Session>(std::uint64_t client)>;

  /// Returns the number of a new connection; numbers are not used twice.
  [[nodiscard]] std::uint64_t open(const Make& make) {
    const std::uint64_t client = next_++;
    clients_.emplace(client, std::make_unique<CommandClient>(make(client)));
    return client;
  }
  /// As CommandClient::run(); false also if there is no such connection.
  [[nodiscard]] bool run(std::uint64_t client, CommandClient::Commands commands, Timestamp deadline,
                         CommandClient::Step step) {
    const auto found = clients_.find(client);
    return found != clients_.end() &&
           found->second->run(std::move(commands), deadline, std::move(step));
  }
  void collect(std::uint64_t client, Timestamp now) {
    const auto found = clients_.find(client);
    if (found != clients_.end()) found->second->collect(now);
  }
  void collect_all(Timestamp now) {
    for (const auto& [number, client] : clients_) client->collect(now);
  }
  /// Whether the connection is open: the node has not closed it, and no deadline was missed.
  [[nodiscard]] bool is_open(std::uint64_t client) const {
    const auto found = clients_.find(client);
    return found != clients_.end() && !found->second->has_ended();
  }
  /// Releases a connection that no session uses any more. reap() closes it, since it may be in use
  /// further up the stack.
  void release(std::uint64_t client) { released_.push_back(client); }
  void reap() {
    for (const std::uint64_t client : std::exchange(released_, {})) clients_.erase(client);
  }

 private:
  std::map<std::uint64_t, std::unique_ptr<CommandClient>> clients_;
  std::vector<std::uint64_t> released_;
  std::uint64_t next_ = 1;
};

}  // namespace semel::net
