// The subcommand `semel dedup`.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/semel/dedup/dedup_flags.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class DedupCommand {
 public:
  /// Adds the subcommand to `program`; this object must outlive the parse.
  explicit DedupCommand(CLI::App& program)
      : app_(program.add_subcommand("dedup", "Write the first occurrence of each line or key")) {
    add_flags(*app_, flags_);
  }

  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] Exit run() const;

 private:
  CLI::App* app_;
  DedupFlags flags_;
};

}  // namespace semel::tool
