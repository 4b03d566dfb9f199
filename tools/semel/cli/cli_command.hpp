// `semel cli`: asks a node, by one command or by lines that are typed, and prints its replies for
// people or as JSON.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/semel/cluster/group_client.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class CliCommand {
 public:
  /// Adds the subcommand to `program`; this object must outlive the parse.
  explicit CliCommand(CLI::App& program);
  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] Exit run() const;

 private:
  CLI::App* app_;
  std::string at_ = "127.0.0.1:6379";
  std::string wait_ = "60s";
  std::string watch_{};
  ClientOptions client_{};
  bool as_json_ = false;
};

}  // namespace semel::tool
