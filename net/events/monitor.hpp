// MONITOR: connections that are shown every command of all others as it has been carried out.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "net/session/client_handle.hpp"

namespace semel::net {

struct Call;
struct ClientState;

class Monitors {
 public:
  Monitors() = default;
  Monitors(const Monitors&) = delete;
  Monitors& operator=(const Monitors&) = delete;

  /// Whether MONITOR may be used at all: it shows what all clients write.
  std::atomic<bool> allowed{false};

  void add(ClientState& client);
  void remove(ClientState& client);
  [[nodiscard]] bool any() const noexcept {
    // mo: relaxed: which of the commands that run now a new monitor is shown first is open
    return count_.load(std::memory_order_relaxed) != 0;
  }
  /// Shows `call`, which has been carried out, without passwords. `source`: who sent it, if it is
  /// not the client itself but, say, "lua".
  void show(Call& call, std::string_view source = {});
  /// As the source of a call: it is one that runs a script, which is shown before it runs.
  static constexpr std::string_view script_begins = "script";

 private:
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::vector<std::shared_ptr<ClientHandle>> handles_;  // under mutex_
};

}  // namespace semel::net
