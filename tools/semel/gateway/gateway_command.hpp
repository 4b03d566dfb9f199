// `semel gateway`: an HTTP gateway that lets each request with an Idempotency-Key through once.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "gateway/proxy/gateway.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class GatewayCommand {
 public:
  explicit GatewayCommand(CLI::App& program);
  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] Exit run();

 private:
  /// Until a signal comes. Errors: those of the gateway, the storage and the engine.
  [[nodiscard]] Status serve();
  [[nodiscard]] Status read_routes();
  [[nodiscard]] Status serve_on(Engine& engine);

  CLI::App* app_;
  gateway::GatewayOptions options_;
  std::string routes_file_;
  std::string directory_;
  std::string memory_{"256MiB"};
  std::string admin_address_{"127.0.0.1"};
  std::uint16_t admin_port_ = 0;
  std::string ready_file_;
  bool checks_ = false;
  bool has_admin_ = false;
};

}  // namespace semel::tool
