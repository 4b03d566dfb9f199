// `semel gateway`: flags, the settings' file, signals.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gateway/proxy/gateway.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class GatewayCommand {
 public:
  /// Adds the subcommand to `program`; this object must outlive the parse.
  explicit GatewayCommand(CLI::App& program);

  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  /// Serves until a signal ends it.
  [[nodiscard]] Exit run() const;

 private:
  /// The settings of the file and the flags. None: an error, printed to standard error.
  [[nodiscard]] std::optional<gateway::Settings> read_settings() const;
  [[nodiscard]] Exit serve(gateway::Gateway& gateway) const;
  void reload(gateway::Gateway& gateway) const;

  CLI::App* app_;
  std::string config_;
  std::string listen_;
  std::string upstream_;
  std::string upstream_ca_;
  std::string tls_cert_;
  std::string tls_key_;
  std::string store_;
  std::vector<std::string> store_nodes_;
  std::string durability_;
  std::string admin_;
  std::string access_log_;
  std::string ready_file_;
  unsigned threads_ = 0;
  bool checks_config_ = false;
};

}  // namespace semel::tool
