// The flags of `semel node`: the settings of net/config, and flags that only print.
#pragma once

#include <CLI/CLI.hpp>

#include "net/config/config_file.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class NodeCommand {
 public:
  /// Adds the subcommand to `program`; this object must outlive the parse.
  explicit NodeCommand(CLI::App& program);

  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] Exit run();

 private:
  CLI::App* app_;
  net::ConfigSources sources_;
  bool prints_config_ = false;
  bool checks_config_ = false;
  bool prepares_group_ = false;
};

}  // namespace semel::tool
