// An HTTP gateway that lets each guarded request through once.
//
//   client -- worker (one thread, one io_context) -- upstream
//               |  claims: blocking calls on threads of their own
//
// A connection stays with one worker, which has upstream connections of its own; nothing of it
// needs a lock. Data flow: head -> route -> key and fingerprint -> claim -> upstream -> claim ended
// -> reply. The reply goes to the client when it is written down: whoever has it need not ask
// again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/proxy/gateway_options.hpp"
#include "semel/engine.hpp"

namespace semel::gateway {

class Gateway {
 public:
  /// Listens when it returns. `engine` must outlive it. Errors: bad_option, storage_in_use (the
  /// address), those of Engine::claims().
  [[nodiscard]] static Result<std::unique_ptr<Gateway>> start(Engine& engine,
                                                              const GatewayOptions& options);
  /// As drain(Millis{0}).
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  /// Prometheus' text.
  [[nodiscard]] std::string metrics() const;
  [[nodiscard]] bool is_draining() const noexcept;
  /// Takes no connections any more, lets requests end for so long, and closes all. Blocks.
  void drain(Millis within);

 private:
  class Inside;
  explicit Gateway(std::unique_ptr<Inside> inside);
  const std::unique_ptr<Inside> inside_;
};

}  // namespace semel::gateway
